//! Certificates of an authority that is on no machine's list, for peers that speak TLS.

use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a certificate that `openssl req -x509` makes for `localhost`, its own authority: `server.pem` and `server.key`.
pub fn make_own(directory: &Path, more: &str) {
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key -out server.pem -days 2 \
                 -subj /CN=localhost -addext subjectAltName=DNS:localhost";
    let mut command = Command::new("openssl");
    command.args(words.split_whitespace()).args(more.split_whitespace());
    command.current_dir(directory).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().expect("openssl").success(), "openssl {words} {more}");
}

/// Writes `ca.pem`, and its certificate for `localhost`: `server.pem` and `server.key`.
pub fn make(directory: &Path) {
    let openssl = |words: &str| {
        let mut command = Command::new("openssl");
        command.args(words.split(' ')).current_dir(directory).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().expect("openssl").success(), "openssl {words}");
    };
    std::fs::write(directory.join("names"), "subjectAltName=DNS:localhost\n").unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(&format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=ours"));
    openssl(&format!("req {key} -keyout server.key -out server.csr -subj /CN=localhost"));
    openssl("x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names");
}
