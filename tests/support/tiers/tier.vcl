# One tier of a CDN, as CloudFront is one: {pop}. What stands in braces is filled in by tests/support/tiers/varnish.rs.
vcl 4.1;

backend next {
    .host = "127.0.0.1";
    .port = "{next}";
    .connect_timeout = 10s;
    .first_byte_timeout = 120s;
    .between_bytes_timeout = 120s;
}

sub vcl_recv {
    # The cache policy CachingOptimized: no cookies, and of Accept-Encoding what the key needs.
    unset req.http.Cookie;
    if (req.http.Accept-Encoding ~ "gzip" && req.http.Accept-Encoding ~ "br") {
        set req.http.Accept-Encoding = "br,gzip";
    } elsif (req.http.Accept-Encoding ~ "br") {
        set req.http.Accept-Encoding = "br";
    } elsif (req.http.Accept-Encoding ~ "gzip") {
        set req.http.Accept-Encoding = "gzip";
    } else {
        unset req.http.Accept-Encoding;
    }
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    return (hash);
}

sub vcl_hash {
    # The built-in hash of path and host goes on after this.
    hash_data(req.http.Accept-Encoding);
}

sub vcl_backend_response {
    # Varnish would put its own name in place of what came.
    set beresp.http.X-Came-Via = beresp.http.Via;
}

sub vcl_deliver {
    if (obj.hits > 0) {
        set resp.http.X-Cache = "Hit from cloudfront";
    } else {
        set resp.http.X-Cache = "Miss from cloudfront";
    }
    unset resp.http.X-Varnish;
    unset resp.http.Via;
    if (resp.http.X-Came-Via) {
        set resp.http.Via = resp.http.X-Came-Via;
    }
    unset resp.http.X-Came-Via;
    set resp.http.X-Amz-Cf-Pop = "{pop}";
    set resp.http.X-Amz-Cf-Id = req.xid + "-{pop}==";
    if ({is_outermost}) {
        # One name for the whole of the CDN, as CloudFront gives.
        if (resp.http.Via) {
            set resp.http.Via = resp.http.Via + ", 1.1 tiers.cloudfront.net (CloudFront)";
        } else {
            set resp.http.Via = "1.1 tiers.cloudfront.net (CloudFront)";
        }
    }
}
