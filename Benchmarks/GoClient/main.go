// A rival of make bench: the same load by Go's net/http. Takes URL TOTAL CONCURRENCY and prints one line of JSON.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The number of connections, as in Ferry's default.
const connections = 64

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: goclient URL TOTAL CONCURRENCY")
		os.Exit(2)
	}
	total, _ := strconv.ParseInt(os.Args[2], 10, 64)
	concurrency, _ := strconv.Atoi(os.Args[3])
	length, _ := strconv.ParseInt(os.Getenv("EXPECT_LEN"), 10, 64)
	client := &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections, DisableCompression: true,
	}}
	times := make([][]time.Duration, concurrency)
	var next, bad int64
	var senders sync.WaitGroup
	start := time.Now()
	for sender := 0; sender < concurrency; sender++ {
		senders.Add(1)
		go func(sender int) {
			defer senders.Done()
			for atomic.AddInt64(&next, 1) <= total {
				began := time.Now()
				answer, err := client.Get(os.Args[1])
				if err != nil {
					atomic.AddInt64(&bad, 1)
					continue
				}
				body, err := io.ReadAll(answer.Body)
				answer.Body.Close()
				if err != nil || answer.StatusCode != 200 || int64(len(body)) != length {
					atomic.AddInt64(&bad, 1)
				}
				times[sender] = append(times[sender], time.Since(began))
			}
		}(sender)
	}
	senders.Wait()
	elapsed := time.Since(start).Seconds()

	var all []time.Duration
	for _, some := range times {
		all = append(all, some...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	at := func(share float64) float64 {
		if len(all) == 0 {
			return 0
		}
		return float64(all[int(share*float64(len(all)-1))].Nanoseconds()) / 1000
	}
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"cpu_user_s": seconds(usage.Utime), "cpu_sys_s": seconds(usage.Stime), "rps": float64(total) / elapsed,
		"p50_us": at(0.5), "p99_us": at(0.99), "maxrss_kb": float64(usage.Maxrss), "bad": float64(bad),
	})
}
