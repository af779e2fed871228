//! Caches inside a cluster as docs/caches.md says: its snippets, with a site on this machine behind them.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::Varnish;

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/caches.md"));

/// It listens within 20 ms on a quiet machine.
const START_WITHIN: Duration = Duration::from_secs(60);

/// The first block of a language on the page.
fn snippet(language: &str) -> &'static str {
    let begins = format!("```{language}\n");
    let (_, rest) = PAGE.split_once(&begins).unwrap_or_else(|| panic!("docs/caches.md has no {language}"));
    rest.split_once("\n```").expect("its end").0
}

/// A text with another in the place of one that must be there.
fn with(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "docs/caches.md has no {from:?}");
    text.replace(from, to)
}

impl Varnish {
    /// The cache of docs/caches.md, before a site. `purgers`: from where it takes purges.
    pub fn inner(site: SocketAddr, purgers: &str) -> Varnish {
        let vcl = with(snippet("vcl"), ".host = \"web\";", ".host = \"127.0.0.1\";");
        let vcl = with(&vcl, ".port = \"80\";", &format!(".port = \"{}\";", site.port()));
        Varnish::running(&with(&vcl, "\"10.0.0.0\"/8;", &format!("\"{purgers}\";")))
    }
}

/// A real nginx. Ended when dropped.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    address: SocketAddr,
    _directory: TempDir,
}

impl Nginx {
    /// The cache of docs/caches.md, before a site.
    pub fn inner(site: SocketAddr) -> Nginx {
        let directory = tempfile::tempdir().expect("a directory");
        // It takes no port of the system's choice; whoever is faster has this one.
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|taken| taken.local_addr()).expect("a port");
        let server = with(snippet("nginx"), "listen 8080", &format!("listen {free}"));
        let server = with(&server, "http://web;", &format!("http://{site};"));
        let server = with(&server, "allow 10.0.0.0/8;", "allow 127.0.0.1;");
        let root = directory.path().display();
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary = temporary.map(|name| format!("{name}_temp_path {root}/{name};\n")).concat();
        let text = format!(
            "load_module /usr/lib/nginx/modules/ngx_http_cache_purge_module.so;\ndaemon off;\nmaster_process off;\npid {root}/pid;\n\
             error_log {root}/said;\nevents {{ worker_connections 64; }}\nhttp {{\naccess_log off;\n{temporary}{server}\n}}\n"
        );
        let file = directory.path().join("nginx.conf");
        std::fs::write(&file, text).expect("a file");
        let mut child = Command::new("nginx")
            .arg("-p")
            .arg(directory.path())
            .arg("-c")
            .arg(&file)
            .args(["-e", "said"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("failed to start nginx: {error}: run `make test-setup` once"));
        let deadline = Instant::now() + START_WITHIN;
        while TcpStream::connect(free).is_err() {
            let said = || std::fs::read_to_string(directory.path().join("said")).unwrap_or_default();
            let is_over = !matches!(child.try_wait(), Ok(None)) || Instant::now() > deadline;
            assert!(!is_over, "nginx does not listen: {}", said());
            std::thread::sleep(Duration::from_millis(5));
        }
        Nginx { child, address: free, _directory: directory }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
