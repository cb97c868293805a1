extension Nginx {
    /// The size of `zeros.bin`, which takes no space on disk.
    static let zeros = 256 * 1024 * 1024

    /// Files under `www`.
    static func writeContent(to folder: ServerFolder) throws {
        try folder.write("Hello, ferry", to: "www/hello.txt")
        try folder.write(pattern(64 * 1024), to: "www/64k.bin")
        try folder.write(pattern(1024 * 1024), to: "www/1m.bin")
        try folder.write(String(repeating: "compress me well, ", count: 4000), to: "www/long.txt")
        try folder.writeZeros(zeros, to: "www/zeros.bin")
        try folder.write("for ferry only", to: "www/private/secret.txt")
        try folder.write("ferry:{PLAIN}secret\n", to: "htpasswd")
    }

    static func configuration(_ options: Options, ports: [Int], folder: String) -> String {
        """
        daemon off;
        worker_processes 1;
        pid nginx.pid;
        error_log error.log info;
        events { worker_connections 2048; }
        http {
            client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
            uwsgi_temp_path uwsgi; scgi_temp_path scgi;
            log_format json escape=json '{"connection":$connection,"request":$connection_requests,'
                '"method":"$request_method","target":"$request_uri","status":$status,"sent":$body_bytes_sent,"version":"$server_protocol",'
                '"tls":"$ssl_protocol","client":"$ssl_client_s_dn","authorization":"$http_authorization",'
                '"cookie":"$http_cookie"}';
            access_log access.log json;
            types { text/plain txt; application/octet-stream bin; }
            gzip on; gzip_types text/plain; gzip_min_length 200;
            keepalive_requests 100000;
            client_max_body_size 0;
            ssl_protocols TLSv1.2 TLSv1.3;
            ssl_certificate valid.pem; ssl_certificate_key valid.key;
        \(Site.allCases.map { server($0, options, ports[$0.rawValue], folder) }.joined(separator: "\n"))
        }
        """
    }

    private static func server(_ site: Site, _ options: Options, _ port: Int, _ folder: String) -> String {
        let special =
            switch site {
            case .mutual: "ssl_client_certificate authority.pem; ssl_verify_client on;"
            case .tls12: "ssl_protocols TLSv1.2;"
            case .tls13: "ssl_protocols TLSv1.3;"
            case .expired: "ssl_certificate expired.pem; ssl_certificate_key expired.key;"
            case .wrongName: "ssl_certificate wrong-name.pem; ssl_certificate_key wrong-name.key;"
            case .untrusted: "ssl_certificate untrusted.pem; ssl_certificate_key untrusted.key;"
            default: ""
            }
        let words = (site.scheme == "https" ? " ssl" : "") + (site == .http2 ? " http2" : "")
        let hosts = ["127.0.0.1"] + (options.listensOnIPv6 ? ["[::1]"] : [])
        let sockets = site == .http || site == .tls ? ["unix:\(folder)/\(site).sock"] : []
        let listen = (hosts.map { "\($0):\(port)" } + sockets).map { "listen \($0)\(words);" }.joined(separator: " ")
        return "    server { \(listen) \(special) include common.conf; }"
    }

    /// The responses of every site.
    static func commonLocations(_ options: Options, ports: [Int]) -> String {
        """
        root www;
        default_type application/octet-stream;
        # One after the other, so that a connection is closed under the client again and again.
        location /brief/ { keepalive_requests 3; alias www/; }
        # An idle connection is closed about when the next request comes.
        location /idle/ { keepalive_timeout 50ms; rewrite ^/idle(/.*) $1 break; proxy_pass http://127.0.0.1:\(options.upstream); }
        location /slow/ { limit_rate 32k; alias www/; }
        location /private/ { auth_basic "ferry"; auth_basic_user_file htpasswd; }
        location = /status { stub_status; }
        location = /no-content { return 204; }
        # Responds before it has read the body of the request.
        location = /early { return 200 "$connection"; }
        location = /busy { add_header Retry-After 1 always; return 503 "busy"; }
        location = /301 { return 301 /echo?from=301; }
        location = /302 { return 302 /echo?from=302; }
        location = /303 { return 303 /echo?from=303; }
        location = /307 { return 307 /echo?from=307; }
        location = /308 { return 308 /echo?from=308; }
        location = /chain/1 { return 302 /chain/2; }
        location = /chain/2 { return 307 http://$http_host/chain/3; }
        location = /chain/3 { return 301 ../hello.txt; }
        location = /loop { return 302 /loop; }
        location = /to-other { return 307 http://127.0.0.1:\(ports[Site.other.rawValue])/echo?from=other&$args; }
        location = /to-http { return 302 http://127.0.0.1:\(ports[Site.http.rawValue])/hello.txt?$args; }
        location = /to-https { return 302 https://127.0.0.1:\(ports[Site.tls.rawValue])/hello.txt; }
        location = /to-file { return 302 file:///etc/passwd; }
        # Refused from the announced length, before the body is read.
        location = /limited { client_max_body_size 1k; proxy_pass http://127.0.0.1:\(options.upstream)/echo; }
        location / { try_files $uri @upstream; }
        location @upstream {
            proxy_pass http://127.0.0.1:\(options.upstream);
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Connection "";
            proxy_request_buffering off;
        }
        """
    }
}
