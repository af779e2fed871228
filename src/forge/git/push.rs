//! Pushing one branch: old → new is the lease, and what the server says of its success is not believed ([gitprotocol-pack]).
//!
//! [gitprotocol-pack]: https://git-scm.com/docs/gitprotocol-pack

use super::advertisement::Advertisement;
use super::exchange::Service;
use super::failure::Failure;
use super::fetch::AGENT;
use super::packet::{Bands, Outgoing, Packets};
use super::{Built, Oid, Remote};

/// Words of servers that refuse a push for good, until a person changes a rule or a right.
const FOR_GOOD: [&str; 6] = ["declined", "prohibited", "protected", "denied", "not allowed", "checked out"];

/// What became of a push that the server did not refuse for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The branch was read again and is as it was asked to be.
    Done,
    /// The branch is not at `old`: nothing was written. Where it is now.
    Moved(Option<Oid>),
    /// The server lets this branch only go forward: what is pushed must have `old` as its parent.
    ForwardOnly,
}

impl Remote {
    pub(super) async fn pushed(&self, branch: &str, old: Option<Oid>, new: Option<&Built>) -> Result<Pushed, Failure> {
        let name = branch_ref(branch)?;
        let target = new.map(|new| new.id);
        let answer = self.door.advertisement(Service::ReceivePack, self.bounds.refs_bytes).await?;
        let server = Advertisement::read(&answer)?;
        let now = server.refs.get(&name).map(|found| found.id);
        if now == target {
            return Ok(Pushed::Done);
        }
        if now != old {
            return Ok(Pushed::Moved(now));
        }
        let body = asked(&server, &name, old, new);
        let answer = self.door.ask(Service::ReceivePack, body, self.bounds.refs_bytes).await?;
        let report = Report::read(&answer, server.has("side-band-64k"), &name);
        let now = self.listed(&[&name]).await?.get(&name).map(|found| found.id);
        if now == target {
            return Ok(Pushed::Done);
        }
        if now != old {
            return Ok(Pushed::Moved(now));
        }
        let Report { refusal, words } = report?;
        let said = if words.is_empty() { words } else { format!("; the server says: {words}") };
        match refusal {
            Some(refusal) if refusal.contains("non-fast-forward") => Ok(Pushed::ForwardOnly),
            Some(refusal) if FOR_GOOD.iter().any(|word| refusal.contains(word)) => {
                Err(Failure::lasting(format!("{refusal}{said}")))
            }
            Some(refusal) => Err(Failure::passing(format!("{refusal}{said}"), None)),
            None => Err(Failure::passing(format!("no refusal was reported, but the branch is as it was{said}"), None)),
        }
    }
}

fn asked(server: &Advertisement, name: &str, old: Option<Oid>, new: Option<&Built>) -> Vec<u8> {
    let ours = ["report-status", "side-band-64k", "ofs-delta"];
    let ours: Vec<&str> = ours.into_iter().filter(|capability| server.has(capability)).chain([AGENT]).collect();
    let [old, target] = [old, new.map(|new| new.id)].map(|id| id.unwrap_or(Oid::ZERO));
    let body = Outgoing::default().line(&format!("{old} {target} {name}\0{}", ours.join(" "))).flush();
    let mut body = body.into_bytes();
    if let Some(new) = new {
        body.extend_from_slice(&new.pack);
    }
    body
}

/// The whole name of a branch, if it can be one ([git-check-ref-format]; its rare rules are the server's to hold).
///
/// [git-check-ref-format]: https://git-scm.com/docs/git-check-ref-format
fn branch_ref(branch: &str) -> Result<String, Failure> {
    let odd = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    match branch.is_empty() || branch.contains(odd) || branch.contains("..") {
        true => Err(Failure::lasting(format!("{branch:?} cannot be the name of a branch"))),
        false => Ok(format!("refs/heads/{branch}")),
    }
}

/// What a server says about a push.
struct Report {
    /// Why it did nothing, if it says so.
    refusal: Option<String>,
    /// Its words to people, such as a hook's.
    words: String,
}

impl Report {
    /// Reads the answer. Some servers answer nothing: the branch says how it is.
    fn read(answer: &[u8], in_bands: bool, name: &str) -> Result<Self, Failure> {
        let bands = if in_bands { Packets::new(answer).bands()? } else { Bands::default() };
        let words = bands.words();
        let mut refusal = None;
        for line in Packets::new(if in_bands { &bands.data } else { answer }).lines() {
            let line = String::from_utf8_lossy(line?).into_owned();
            let unpack = line.strip_prefix("unpack ").filter(|how| *how != "ok");
            let not_good = line.strip_prefix("ng ").and_then(|line| line.strip_prefix(name));
            if let Some(why) = not_good.or(unpack) {
                refusal = Some(why.trim().to_owned());
            }
        }
        Ok(Self { refusal, words })
    }
}
