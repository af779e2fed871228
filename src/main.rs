//! The program: reads its arguments and its environment, and hands both to `cli`.

use std::process::ExitCode;

use allclear::cli;

#[expect(clippy::disallowed_methods, reason = "the environment is read here, once, and given on as data")]
#[expect(clippy::print_stderr, reason = "said before there is a log")]
fn main() -> ExitCode {
    // Libraries that find two providers of TLS panic at the first handshake; there is one, and this says which.
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        eprintln!("warning: another TLS provider was installed first; going on with it");
    }
    // A variable that is not text cannot be one of ours.
    let environment =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().collect();
    cli::main(cli::parse(&arguments), environment.collect())
}
