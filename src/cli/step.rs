//! What runs inside a Job, in containers of ours: fetches the commit, says what a plan would change, compares it with what was
//! said yes to, and writes outputs. It needs no configuration, and but for `publish` no cluster.
//!
//! The result goes to the termination message, which the controller reads, and words for people go to standard error. Exit codes:
//! 0 done, 1 failed, 3 the plan is another one.
//!
//! Not for the user's own containers, nor for when a Job is made.

mod publish;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::adapters::forge_http::ForgeHttp;
use crate::adapters::http::SystemLookup;
use crate::adapters::source::{self, Fetched, Wanted};
use crate::cli::answer::{EXIT_FAILED, Outcome};
use kernel::text::clean;
use objects::repo::job::PLAN_DIFFERS;
use objects::repo::plan::{MESSAGE_BYTES_MAX, Message, PLAN_BYTES_MAX, Planned, changes, fingerprint, with_changes};
use objects::repo::reported::Listed;
use objects::repo::spec;
use objects::repo::status::Counts;
use publish::Publishing;

/// Time for one exchange with the git host: 256 MiB at 4 Mbit/s. The Job has a deadline of its own.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Debug, Subcommand)]
pub(super) enum Step {
    /// Fetch a commit and write its files
    Source {
        /// Where the repository is
        #[arg(long)]
        url: String,
        /// The commit
        #[arg(long)]
        revision: String,
        /// The ref in whose history it is looked for, if the server gives out no commits by id
        #[arg(long = "ref", value_name = "REF")]
        reference: String,
        /// Where the files go
        #[arg(long, value_name = "DIR")]
        into: PathBuf,
        /// A folder with the keys of the Secret as files
        #[arg(long, value_name = "DIR")]
        secret: Option<PathBuf>,
        /// A folder that must be among the files: commands run there
        #[arg(long, value_name = "PATH")]
        path: Option<PathBuf>,
        /// A host that may have a private address
        #[arg(long = "private-host", value_name = "HOST")]
        private_hosts: Vec<String>,
        /// A stand-in for a host, without TLS: for tests and demonstrations
        #[arg(long = "stand-in", value_name = "HOST=IP:PORT", value_parser = stand_in)]
        stand_ins: Vec<(String, SocketAddr)>,
        #[command(flatten)]
        log: Log,
    },
    /// Fail where Terraform would keep its state in the pod
    Backend {
        /// Where the commands run
        #[arg(long, value_name = "DIR")]
        folder: PathBuf,
        /// Where Terraform keeps what it knows of that folder
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        #[command(flatten)]
        log: Log,
    },
    /// Say what a plan would change
    Report {
        #[command(flatten)]
        plan: Plan,
        #[command(flatten)]
        log: Log,
    },
    /// Compare a plan with the one that was said yes to
    Verify {
        #[command(flatten)]
        plan: Plan,
        /// What was said yes to
        #[arg(long)]
        fingerprint: String,
        /// A plan that changes nothing passes, too
        #[arg(long)]
        or_empty: bool,
        #[command(flatten)]
        log: Log,
    },
    /// Write outputs to a Secret
    Publish {
        #[command(flatten)]
        publish: Publishing,
        #[command(flatten)]
        log: Log,
    },
}

#[derive(Debug, Args)]
pub(super) struct Log {
    /// Where the result is written
    #[arg(long = "termination-log", value_name = "FILE", default_value = "/dev/termination-log")]
    file: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct Plan {
    /// How the plan is read
    #[arg(long, value_enum)]
    preset: Preset,
    /// The folder that the plan was written to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Say the addresses of what would change, too
    #[arg(long)]
    addresses: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Preset {
    #[value(name = "Terraform")]
    Terraform,
    #[value(name = "Command")]
    Command,
}

/// Why a step failed. All that becomes of it is words.
type Wrong = Box<dyn std::error::Error>;

/// What a step came to: for the controller, for people, and the exit code.
struct End {
    message: String,
    words: String,
    code: u8,
}

impl End {
    /// It is done, and the controller repeats how.
    fn said(words: String) -> Self {
        Self { message: words.clone(), words, code: 0 }
    }
}

pub(super) fn step(step: Step) -> Outcome {
    let (end, log) = match step {
        Step::Source { url, revision, reference, into, secret, path, private_hosts, stand_ins, log } => {
            let wanted = Wanted {
                url: &url,
                revision: &revision,
                reference: &reference,
                secret: secret.as_deref(),
                into: &into,
            };
            let fetched = fetched(&wanted, private_hosts, stand_ins);
            (fetched.and_then(|end| has(&into, path.as_deref()).map(|()| end)), log)
        }
        Step::Backend { folder, data, log } => (keeps_its_state(&folder.join(data)), log),
        Step::Report { plan, log } => {
            (plan.read().and_then(|(planned, changes)| reported(Message::Planned(planned), &changes, 0)), log)
        }
        Step::Publish { publish, log } => (publish.run().map(End::said), log),
        Step::Verify { plan, fingerprint, or_empty, log } => {
            let differs = u8::try_from(PLAN_DIFFERS).unwrap_or(EXIT_FAILED);
            let passes = |planned: &Planned| planned.fingerprint == fingerprint || (or_empty && planned.empty);
            let verified = plan.read().and_then(|(planned, changes)| match passes(&planned) {
                true => reported(Message::Planned(planned), &changes, 0),
                false => reported(Message::Differs(planned), &changes, differs),
            });
            (verified, log)
        }
    };
    let End { message, words, code } = end.unwrap_or_else(|why| End {
        message: clean(&why.to_string(), MESSAGE_BYTES_MAX),
        words: format!("error: {why}"),
        code: EXIT_FAILED,
    });
    match fs::write(&log.file, message) {
        Ok(()) => Outcome { out: String::new(), err: format!("{words}\n"), code },
        Err(error) => {
            let err = format!("{words}\nerror: failed to write {}: {error}\n", log.file.display());
            Outcome { out: String::new(), err, code: EXIT_FAILED }
        }
    }
}

/// Whether the folder is among the files. A container runtime makes a working directory that is missing, and then a command would run in
/// an empty one.
fn has(into: &Path, path: Option<&Path>) -> Result<(), Wrong> {
    match path {
        Some(path) if !into.join(path).is_dir() => {
            Err(format!("the commit has no folder {}: correct spec.path", path.display()).into())
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether the state is kept elsewhere, by what `terraform init` has written
/// (`internal/command/workdir/backend_state.go` of <https://github.com/hashicorp/terraform/tree/v1.9.0>). Without a backend it writes
/// nothing.
fn keeps_its_state(data: &Path) -> Result<End, Wrong> {
    let file = data.join("terraform.tfstate");
    let text = match bounded(&file, PLAN_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(format!("failed to read {}: {error}", file.display()).into()),
    };
    let known: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    match known.pointer("/backend/type").and_then(serde_json::Value::as_str) {
        Some(kind) if kind != "local" => Ok(End {
            message: String::new(),
            words: format!("the state is kept by the backend {}", clean(kind, 64)),
            code: 0,
        }),
        Some(_) | None => {
            Err("Terraform would keep its state in this pod, and lose it: name a backend in the configuration, or set \
                               runner.allowLocalState where a mount keeps it"
                .into())
        }
    }
}

fn fetched(wanted: &Wanted<'_>, private: Vec<String>, stand_ins: Vec<(String, SocketAddr)>) -> Result<End, Wrong> {
    let private: BTreeSet<String> = private.into_iter().map(|host| host.to_ascii_lowercase()).collect();
    let http = ForgeHttp::new(private).with(EXCHANGE_TIMEOUT, Arc::new(SystemLookup));
    let stand_ins: BTreeMap<String, SocketAddr> = stand_ins.into_iter().collect();
    let http = Arc::new(if stand_ins.is_empty() { http } else { http.with_stand_ins(stand_ins) });
    let Fetched { files, bytes, submodules, pointers } = actix::System::new().block_on(source::fetch(http, wanted))?;
    let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
    let mut words = format!("fetched {} of {}: {files}, {bytes} bytes", wanted.revision, wanted.url);
    if !submodules.is_empty() {
        let shown = clean(&submodules.join(", "), 400);
        words.push_str(&format!("\nsubmodules are not fetched; their folders are empty: {shown}"));
    }
    if pointers > 0 {
        words.push_str(&format!(
            "\nfiles that git LFS keeps elsewhere are not fetched; {pointers} of them only name such a file"
        ));
    }
    Ok(End { message: String::new(), words, code: 0 })
}

fn reported(message: Message, changes: &Listed, code: u8) -> Result<End, Wrong> {
    let words = match &message {
        Message::Planned(planned) => said(planned),
        Message::Differs(planned) => format!(
            "the plan is not the one that was said yes to, so it is not applied; now {}; its fingerprint is {}",
            said(planned),
            planned.fingerprint
        ),
    };
    Ok(End { message: with_changes(&message.to_json()?, changes), words, code })
}

fn said(Planned { fingerprint: _, counts, empty }: &Planned) -> String {
    match counts {
        _ if *empty => "the plan changes nothing".to_owned(),
        Some(Counts { add, change, destroy }) => {
            format!("the plan would add {add}, change {change} and destroy {destroy}")
        }
        None => "the plan would change something".to_owned(),
    }
}

impl Plan {
    /// What the plan would change, with addresses where they are asked for.
    fn read(&self) -> Result<(Planned, Listed), Wrong> {
        let (preset, name) = match self.preset {
            Preset::Terraform => (spec::Preset::Terraform, "plan.json"),
            Preset::Command => (spec::Preset::Command, "plan"),
        };
        let file = self.out.join(name);
        let plan = bounded(&file, PLAN_BYTES_MAX).map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!("the step plan wrote no {}", file.display()),
            _ => format!("failed to read {}: {error}", file.display()),
        })?;
        let listed = if self.addresses { changes(preset, &plan)? } else { Listed::default() };
        Ok((fingerprint(preset, &plan)?, listed))
    }
}

/// A file, or its beginning: one byte more than it may have.
fn bounded(file: &Path, bytes_max: usize) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    File::open(file)?.take(most).read_to_end(&mut text)?;
    Ok(text)
}

fn stand_in(text: &str) -> Result<(String, SocketAddr), String> {
    let (host, address) = text.split_once('=').ok_or_else(|| "HOST=IP:PORT".to_owned())?;
    let address: SocketAddr = address.parse().map_err(|error| format!("{address}: {error}"))?;
    match address.ip().is_loopback() {
        true => Ok((host.to_owned(), address)),
        false => Err("a stand-in is on loopback".to_owned()),
    }
}
