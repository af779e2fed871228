//! A git host: real `git http-backend`, behind the sandbox's own HTTP server ([git-http-backend]).
//!
//! What git does is git's own; ours is the login, and to leave out protocol v2. Its server answers one request at a time, and
//! waits for git meanwhile: every answer here is a program that ends by itself.
//!
//! Not for rights by repository or branch: those are a forge's.
//!
//! [git-http-backend]: https://git-scm.com/docs/git-http-backend

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::http::{Reply, Request, StandIn};
use super::world::{directory, remove};

/// The program, found through `PATH`.
pub const PROGRAM: &str = "git";

/// The author and time of the commits of [`GitHost::commit`].
const PERSON: &str = "Ann <ann@example.com> 1700000000 +0000";

/// Bare repositories in a directory of their own, which is removed when this is dropped, if it is ever dropped: see [`GitHost::within`].
#[derive(Debug)]
pub struct GitHost {
    root: PathBuf,
    manner: Mutex<Manner>,
}

#[derive(Debug, Default)]
struct Manner {
    /// The `Authorization` header without which nothing is served.
    proof: Option<String>,
    only_v0: bool,
}

impl GitHost {
    /// One without repositories, open to all.
    ///
    /// # Errors
    /// There is no place for it.
    pub fn new() -> io::Result<Self> {
        Ok(Self { root: directory()?, manner: Mutex::default() })
    }

    /// The same in a directory whose owner removes it, with all that is in it. A program that ends needs this: the thread of the server
    /// that has the host may end later than the program, and so never drop it.
    ///
    /// # Errors
    /// There is no place for it.
    pub fn within(directory: &Path) -> io::Result<Self> {
        let root = directory.join("git");
        fs::create_dir(&root)?;
        Ok(Self { root, manner: Mutex::default() })
    }

    /// Serves only those who know this user and password.
    pub fn require_basic(&self, user: &str, password: &str) {
        self.manner().proof = Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))));
    }

    /// Serves only those who know this token.
    pub fn require_bearer(&self, token: &str) {
        self.manner().proof = Some(format!("Bearer {token}"));
    }

    /// Speaks protocol v0 only from now on, as servers without v2 do.
    pub fn forget_v2(&self) {
        self.manner().only_v0 = true;
    }

    /// Makes an empty repository that can be pushed to, with `main` as its branch: `create("shop/web.git", &[])`. Options are
    /// those of `git init`.
    ///
    /// # Errors
    /// In git's words.
    pub fn create(&self, path: &str, options: &[&str]) -> io::Result<()> {
        let mut init = self.command(&self.root);
        init.args(["init", "--quiet", "--bare", "--initial-branch=main"]).args(options).arg(path);
        run(&mut init, &[])?;
        // Git checks what is pushed, and leaves no program behind that tidies up.
        let on = ["http.receivepack", "uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant", "receive.fsckObjects"];
        for (key, value) in on.map(|key| (key, "true")).into_iter().chain([("gc.auto", "0")]) {
            self.git(path, &["config", key, value])?;
        }
        Ok(())
    }

    /// Sets files on a branch by a commit on top of it, or by its first one; returns the commit.
    ///
    /// # Errors
    /// In git's words.
    pub fn commit(&self, path: &str, branch: &str, files: &[(&str, &[u8])]) -> io::Result<String> {
        let name = format!("refs/heads/{branch}");
        let mut stream = format!("commit {name}\ncommitter {PERSON}\ndata 6\nchange\n").into_bytes();
        if self.git(path, &["rev-parse", "--quiet", "--verify", &name]).is_ok() {
            writeln!(stream, "from {name}^0")?;
        }
        for (file, content) in files {
            writeln!(stream, "M 100644 inline {file}\ndata {}", content.len())?;
            stream.write_all(content)?;
            stream.write_all(b"\n")?;
        }
        self.import(path, &stream)?;
        self.git(path, &["rev-parse", &name])
    }

    /// Adds what a stream for `git fast-import` says.
    ///
    /// # Errors
    /// In git's words.
    pub fn import(&self, path: &str, stream: &[u8]) -> io::Result<()> {
        run(self.command(&self.directory(path)).args(["fast-import", "--quiet"]), stream).map(drop)
    }

    /// Where a repository is on disk, for another server of it.
    pub fn directory(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Puts a hook into a repository: `hook("shop/web.git", "pre-receive", "#!/bin/sh\nexit 1\n")`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn hook(&self, path: &str, name: &str, script: &str) -> io::Result<()> {
        let file = self.directory(path).join("hooks").join(name);
        fs::write(&file, script)?;
        fs::set_permissions(file, fs::Permissions::from_mode(0o755))
    }

    /// Runs git in a repository: `git("shop/web.git", &["rev-parse", "main"])`. Returns what it says, without space around.
    ///
    /// # Errors
    /// In git's words.
    pub fn git(&self, path: &str, arguments: &[&str]) -> io::Result<String> {
        let output = run(self.command(&self.directory(path)).args(arguments), &[])?;
        Ok(String::from_utf8_lossy(&output).trim().to_owned())
    }

    fn manner(&self) -> MutexGuard<'_, Manner> {
        self.manner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Git without any configuration of this machine.
    fn command(&self, directory: &Path) -> Command {
        let mut command = Command::new(PROGRAM);
        command.current_dir(directory).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin")));
        command.env("HOME", &self.root).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command
    }

    fn backend(&self, request: &Request) -> io::Result<Reply> {
        let mut command = self.command(&self.root);
        command.arg("http-backend").env("GIT_PROJECT_ROOT", &self.root).env("GIT_HTTP_EXPORT_ALL", "1");
        command.env("REQUEST_METHOD", request.method.as_str()).env("QUERY_STRING", &request.raw_query);
        command.env("PATH_INFO", &request.path).env("REMOTE_ADDR", "127.0.0.1").env("REMOTE_USER", "visitor");
        command.env("CONTENT_LENGTH", request.body.len().to_string());
        command.env("CONTENT_TYPE", request.header("content-type").unwrap_or_default());
        if let Some(version) = request.header("git-protocol").filter(|_| !self.manner().only_v0) {
            command.env("GIT_PROTOCOL", version);
        }
        // Where a service fails after it has begun to answer, its answer is what a web server would send.
        let (_, output, words) = finished(&mut command, &request.body)?;
        answered(&output).ok_or_else(|| io::Error::other(words))
    }
}

impl StandIn for GitHost {
    fn answer(&self, request: &Request) -> Reply {
        let proof = self.manner().proof.clone();
        if proof.is_some_and(|proof| request.header("authorization") != Some(&proof)) {
            return Reply::full(401, "text/plain", "who are you?").header("www-authenticate", "Basic realm=\"git\"");
        }
        self.backend(request).unwrap_or_else(|error| Reply::full(500, "text/plain", error.to_string()))
    }
}

impl Drop for GitHost {
    fn drop(&mut self) {
        remove(&self.root);
    }
}

/// A CGI program's answer ([RFC 3875], 6).
///
/// [RFC 3875]: https://www.rfc-editor.org/rfc/rfc3875#section-6
fn answered(output: &[u8]) -> Option<Reply> {
    let end = output.windows(4).position(|window| window == b"\r\n\r\n")?;
    let (head, body) = output.split_at(end);
    let mut reply = Reply::full(200, "text/plain", body.get(4..)?.to_vec());
    reply.headers.clear();
    for line in std::str::from_utf8(head).ok()?.lines() {
        match line.split_once(": ")? {
            ("Status", status) => reply.status = status.split(' ').next()?.parse().ok()?,
            (name, value) => reply.headers.push((name.to_owned(), value.to_owned())),
        }
    }
    Some(reply)
}

/// Runs a program that must succeed; returns what it wrote.
fn run(command: &mut Command, input: &[u8]) -> io::Result<Vec<u8>> {
    match finished(command, input)? {
        (status, output, _) if status.success() => Ok(output),
        (status, _, words) => Err(io::Error::other(format!("git ended with {status}: {}", words.trim()))),
    }
}

/// Runs a program to its end: how it ended, what it wrote, and its words.
fn finished(command: &mut Command, input: &[u8]) -> io::Result<(ExitStatus, Vec<u8>, String)> {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| io::Error::new(error.kind(), format!("{PROGRAM} cannot be run: {error}")))?;
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let (mut output, mut words) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        // The program may write before it has read all, and may end without reading: then its exit says why.
        scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(input)));
        scope.spawn(|| stderr.map(|mut stderr| stderr.read_to_end(&mut words)));
        child.stdout.take().map_or(Ok(0), |mut stdout| stdout.read_to_end(&mut output))
    })?;
    Ok((child.wait()?, output, String::from_utf8_lossy(&words).into_owned()))
}
