// A rival of make bench: the same load by reqwest. Takes URL TOTAL CONCURRENCY and prints one line of JSON with the
// fields of Go's client.
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;
use std::time::Instant;

fn usage() -> (f64, f64, i64) {
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_maxrss)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let (url, total) = (words[1].clone(), words[2].parse::<i64>().unwrap());
    let concurrency: usize = words[3].parse().unwrap();
    let length: usize = std::env::var("EXPECT_LEN").unwrap().parse().unwrap();
    let client = reqwest::Client::builder().pool_max_idle_per_host(concurrency).build().unwrap();
    let left = Arc::new(AtomicI64::new(total));
    let start = Instant::now();
    let mut senders = Vec::new();
    for _ in 0..concurrency {
        let (client, url, left) = (client.clone(), url.clone(), left.clone());
        senders.push(tokio::spawn(async move {
            let (mut times, mut bad) = (Vec::new(), 0u64);
            while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                let sent = Instant::now();
                let right = match client.get(&url).send().await {
                    Ok(response) => {
                        response.status() == 200 && response.bytes().await.map_or(false, |b| b.len() == length)
                    }
                    Err(_) => false,
                };
                if !right { bad += 1 }
                times.push(sent.elapsed().as_micros() as u64);
            }
            (times, bad)
        }));
    }
    let (mut times, mut bad) = (Vec::new(), 0u64);
    for sender in senders {
        let (some, wrong) = sender.await.unwrap();
        times.extend(some);
        bad += wrong;
    }
    let seconds = start.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let (user, system, memory) = usage();
    println!(
        "{{\"cpu_user_s\":{user},\"cpu_sys_s\":{system},\"rps\":{},\"p50_us\":{},\"p99_us\":{},\"maxrss_kb\":{memory},\"bad\":{bad}}}",
        total as f64 / seconds, at(0.5), at(0.99)
    );
}
