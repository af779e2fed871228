//! A board in Redis: the copies of all members' records, through which the group agrees, and in the same keys the tag cache
//! of the old program, readable by people and scripts (decisions 3 and 14).
//!
//! ```text
//! $ redis-cli hgetall allclear:{default}:rec:eu-1:deployment/shop/web
//! version  web registry.example.com/shop/web:1.2    the images, container by container, for people and scripts
//! phase    complete                                 rolling, complete, failed, withdrawn, absent, or gone
//! org seq rev                                       which ledger's record, which rollout, which state of it
//! body     {"r":7,…}                                the record itself, for programs
//! mac      9f86d081884c7d65…                        who may write it, in a group with a key
//! ```
//!
//! | key (after `allclear:{group}:`) | type | holds |
//! |---|---|---|
//! | `rec:<member>:<workload>` | hash | one record, as above, or for an hour its removal |
//! | `stamp:<member>` | string | counts the member's changes here |
//! | `index:<member>` | sorted set | workload → the stamp of its last change, so that a reader reads only news |
//! | `passing:<member>` | sorted set | those of the index that expire |
//! | `members` | set | whose keys there are |
//! | `hb:<member>` | string | its beat, for 30 s |
//! | `server` | string | tells servers apart, only where `INFO` is forbidden |
//! | channel `wake` | | `member workload rev` of each change |
//!
//! Redis loses its newest changes first, in a crash as in a failover, so a stamp below one it has answered tells that copies
//! are lost as well. Evicted copies are found by looking at some of our own with every read.

mod copy;
mod elders;
pub(super) mod role;
mod scripts;
mod seal;
mod wake;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ::redis::aio::ConnectionManager;
use ::redis::{ErrorKind, Pipeline, RedisError, RedisResult, Script, ServerErrorKind, cmd, pipe};
use async_trait::async_trait;

use self::copy::{BoardCopy, problem};
use self::elders::prefix;
use self::scripts::Answer;
use super::{SENTINEL, Server};
use crate::config::Secret;
use kernel::id::{Member, Origin, WorkloadId, is_key_part};
use purge::agreement::roster::Heartbeat;
use purge::ports::{BEAT_TTL, Board, Cursor, Flow, Heard, Interest, News, PortError, Posted, Posting};
use purge::records::record::RECORD_BYTES_MAX;

pub use self::copy::CopyCodec;
pub use self::role::refusal as write_refusal;

/// Bytes of copies in one request, not counting the last one: a quarter of a second on a line of 10 Mbit/s, far from the
/// time an answer may take.
const REQUEST_BYTES_MAX: usize = 256 * 1024;

/// Records in one answer.
const RECORDS_MAX: usize = 500;

/// Bytes of beats and records in one answer, not counting the last record: half a second on a line of 10 Mbit/s.
const ANSWER_BYTES_MAX: usize = 512 * 1024;

/// Copies of our own that are looked at with each read: all of 10,000 in 100 reads, 10 min with one every 5 s.
const PROBED: usize = 100;

/// How often we try to replace a copy that is in the way. More tries would help only against other processes of our
/// name that do the same just then.
const ATTEMPTS: usize = 3;

/// A stamp that is this far ahead of the last one cannot have been reached by counting; a peer restarted from a random
/// stamp. A life of the program jumps ahead by at most [`RECORDS_MAX`] times [`JUMP`], 2^29.
const LEAP: u64 = 1 << 32;

/// How far the first posts of a life jump ahead: above all that may have been counted and lost since the life before.
/// 2^52 stamps last for millions of lives.
const JUMP: u64 = 1 << 20;

/// One server, as one member uses it.
#[derive(Debug)]
pub struct RedisBoard {
    server: Server,
    member: Member,
    prefix: String,
    copies: CopyCodec,
    /// The group called `default`, where ours has a derived name: its prefix, and what believes its beats.
    elders: Option<(String, CopyCodec)>,
    merge: Script,
    read: Script,
    forget: Script,
    beat: Script,
    server_name: Script,
    stamps: Mutex<Stamps>,
}

/// What the server has shown of our own copies.
#[derive(Debug, Default)]
struct Stamps {
    /// The newest stamp. One below it tells of a loss.
    newest: u64,
    /// The highest stamp ever, also from before a loss: readers may have reached it.
    highest: u64,
    /// It has lost records, and we have not reported that yet.
    lost: bool,
    /// This life has posted a change.
    begun: bool,
    /// The place in our index that is looked at next.
    probe: usize,
}

impl RedisBoard {
    /// `member`'s view of `group` in `server`. Nothing is sent yet. Of the `keys` the first signs and all verify; without any nothing is signed.
    pub fn new(server: Server, group: &str, member: &Member, keys: impl IntoIterator<Item = Secret<Vec<u8>>>) -> Self {
        Self {
            server,
            member: member.clone(),
            prefix: prefix(group),
            copies: CopyCodec::new(group, keys),
            elders: None,
            merge: Script::new(scripts::MERGE),
            read: Script::new(scripts::READ),
            forget: Script::new(scripts::FORGET),
            beat: Script::new(scripts::BEAT),
            server_name: Script::new(scripts::SERVER),
            stamps: Mutex::default(),
        }
    }

    fn key(&self, kind: &str, of: &str) -> String {
        format!("{}{kind}:{of}", self.prefix)
    }

    fn stamps(&self) -> MutexGuard<'_, Stamps> {
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts some copies and answers for each. What is in the way of one is looked at, and replaced if it may be.
    async fn post_some(&self, copies: &mut [BoardCopy]) -> Result<Vec<Posted>, PortError> {
        let mut answers: Vec<Posted> = copies.iter().map(|_| in_the_way()).collect();
        let mut pending: Vec<usize> = (0..copies.len()).collect();
        for _ in 0..ATTEMPTS {
            let asked: Vec<&BoardCopy> = pending.iter().filter_map(|&at| copies.get(at)).collect();
            let merged = self.merge_all(&asked).await?;
            let mut again = Vec::new();
            for (at, merged) in pending.into_iter().zip(merged) {
                let (Some(answer), Some(copy)) = (answers.get_mut(at), copies.get_mut(at)) else { continue };
                match self.judged(copy, merged) {
                    Some(posted) => *answer = posted,
                    None => again.push(at),
                }
            }
            if again.is_empty() {
                break;
            }
            pending = again;
        }
        Ok(answers)
    }

    /// What came of one copy; nothing if what is in its way is now to be replaced.
    fn judged(&self, copy: &mut BoardCopy, merged: Merged) -> Option<Posted> {
        match merged {
            Merged::There => Some(Posted::Current),
            Merged::Foreign => Some(Posted::Refused(format!(
                "WRONGTYPE: another program keeps something else under {}; rename one of the two, we delete nothing",
                self.key("rec", &format!("{}:{}", self.member, copy.workload))
            ))),
            Merged::Newer { token, body, mac } => {
                let theirs = self.copies.believe(&self.member, &copy.workload, &copy.origin, &body, &mac);
                match theirs.as_ref().map(Posting::state) {
                    Ok((seq, revision)) if (seq, revision) >= (copy.seq, copy.revision) => {
                        Some(Posted::Newer(seq, revision))
                    }
                    // Not believed, or not what its fields say: nothing of ours is lost with it.
                    _ => {
                        copy.over = token;
                        None
                    }
                }
            }
            Merged::OfAnotherLedger { token } => {
                copy.over = token;
                None
            }
        }
    }

    /// Sends the merge script for each copy in one request.
    async fn merge_all(&self, copies: &[&BoardCopy]) -> Result<Vec<Merged>, PortError> {
        let (floor, known, begun) = {
            let stamps = self.stamps();
            // A loss that a reading has reported is not reported again: then nothing is known until this has been posted.
            let known = if stamps.newest < stamps.highest { 0 } else { stamps.newest };
            (stamps.highest, known, stamps.begun)
        };
        let base = 1 + (getrandom::u64().unwrap_or_default() >> 12);
        let mut requests = pipe();
        requests.ignore_errors();
        for copy in copies {
            let key = self.key("rec", &format!("{}:{}", self.member, copy.workload));
            requests.cmd("EVALSHA").arg(self.merge.get_hash()).arg(5).arg(key);
            requests.arg(self.key("stamp", &self.member.0)).arg(self.key("index", &self.member.0));
            requests.arg(self.key("passing", &self.member.0)).arg(format!("{}members", self.prefix));
            requests.arg(&self.member.0).arg(copy.workload.to_string()).arg(self.channel());
            requests.arg(&copy.origin.0).arg(copy.seq.to_string()).arg(copy.revision.to_string());
            requests.arg(&copy.version).arg(copy.phase).arg(&copy.body).arg(&copy.mac);
            requests.arg(copy.ttl.as_secs()).arg(&copy.over).arg(floor).arg(base).arg(if begun { 0 } else { JUMP });
        }
        let what = match copies {
            [copy] => format!("post {}", copy.workload),
            _ => format!("post {} records", copies.len()),
        };
        let script = &self.merge;
        let run = |mut redis: ConnectionManager| async move { run_all(&requests, script, &mut redis).await };
        let answers: Vec<Vec<Vec<u8>>> = self.server.call(&what, run).await?;
        Ok(answers.into_iter().map(|answer| self.merged(answer, known)).collect())
    }

    /// Reads one answer of the script, whose stamp is remembered.
    fn merged(&self, answer: Vec<Vec<u8>>, known: u64) -> Merged {
        let mut parts = answer.into_iter();
        let mut next = || parts.next().unwrap_or_default();
        match next().as_slice() {
            b"stored" => {
                let (stamp, lost) = (number(&next()), next() == b"lost");
                let mut stamps = self.stamps();
                stamps.lost |= known != 0 && (lost || leapt(known, stamp));
                stamps.newest = stamps.newest.max(stamp);
                stamps.highest = stamps.highest.max(stamp);
                stamps.begun = true;
                Merged::There
            }
            b"kept" => {
                let stamp = number(&next());
                let mut stamps = self.stamps();
                stamps.newest = stamps.newest.max(stamp);
                Merged::There
            }
            b"foreign" => Merged::Foreign,
            b"newer" => Merged::Newer { token: next(), body: next(), mac: next() },
            _ => Merged::OfAnotherLedger { token: next() },
        }
    }

    fn channel(&self) -> String {
        format!("{}wake", self.prefix)
    }

    /// Whether our own copies are as we left them, by the stamp that was the newest when the answer was asked for.
    fn lost(&self, known: u64, stamp: u64, missing: bool, looked_at: usize) -> bool {
        let mut stamps = self.stamps();
        let fell = stamp < known;
        stamps.lost |= missing || fell || leapt(known, stamp);
        stamps.newest = if fell && stamps.newest == known { stamp } else { stamps.newest.max(stamp) };
        stamps.highest = stamps.highest.max(stamp);
        stamps.probe = if looked_at < PROBED { 0 } else { stamps.probe.saturating_add(PROBED) };
        std::mem::take(&mut stamps.lost)
    }

    fn heard(&self, change: &[Vec<u8>]) -> Option<Result<Heard, String>> {
        let [member, workload, origin, body, mac] = change else { return None };
        let [member, workload, origin] = [member, workload, origin].map(|text| String::from_utf8_lossy(text));
        let member = Member(member.into_owned());
        if !is_key_part(&member.0) {
            return Some(Err("a copy of a member whose name is none".to_owned()));
        }
        let Ok(workload) = workload.parse::<WorkloadId>() else {
            return Some(Err(format!("a copy of {member} of what is no workload")));
        };
        let origin = Origin(origin.into_owned());
        let said = self.copies.believe(&member, &workload, &origin, body, mac);
        Some(match said {
            Ok(said) => Ok(Heard { member, workload, origin, said }),
            Err(why) => Err(format!("the copy of {member}'s {workload}: {why}")),
        })
    }
}

/// What became of a copy that was sent.
enum Merged {
    There,
    Foreign,
    Newer { token: Vec<u8>, body: Vec<u8>, mac: Vec<u8> },
    OfAnotherLedger { token: Vec<u8> },
}

#[async_trait]
impl Board for RedisBoard {
    fn name(&self) -> &str {
        self.server.shown()
    }

    async fn identity(&self) -> Result<String, PortError> {
        const WHAT: &str = "learn which server answers";
        let key = format!("{}server", self.prefix);
        let nonce = format!("{:016x}", getrandom::u64().unwrap_or_default());
        let database = self.server.client.get_connection_info().redis_settings().db();
        let mut name = self.server_name.prepare_invoke();
        let ask = |mut redis: ConnectionManager| async move {
            let info = cmd("INFO").arg("server").query_async::<String>(&mut redis).await;
            let run_id = match info {
                // It has an id, and would count as a server of the group.
                Ok(info) if info.lines().any(|line| line.trim() == "redis_mode:sentinel") => return Ok(String::new()),
                Ok(info) => info.lines().find_map(|line| line.strip_prefix("run_id:")).map(|id| id.trim().to_owned()),
                // Forbidden, or renamed away.
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm) => None,
                Err(error) if error.code() == Some("ERR") => None,
                Err(error) => return Err(error),
            };
            // Two databases of one server hold different keys, so they are two boards.
            if let Some(run_id) = run_id.filter(|id| !id.is_empty()) {
                return Ok(format!("{run_id}/{database}"));
            }
            name.key(&key).arg(&nonce).invoke_async::<String>(&mut redis).await
        };
        match self.server.call(WHAT, ask).await {
            Ok(name) if name.is_empty() => Err(PortError::lasting(self.server.attempted(WHAT), SENTINEL)),
            answer => answer,
        }
    }

    async fn post(&self, origin: &Origin, postings: &[(WorkloadId, Posting)]) -> Result<Vec<Posted>, PortError> {
        let mut answers = Vec::with_capacity(postings.len());
        let mut request: Vec<BoardCopy> = Vec::new();
        let mut bytes = 0_usize;
        // Places of the answers of this request.
        let mut places = Vec::new();
        for (workload, posting) in postings {
            match self.copies.make(&self.member, workload, origin, posting) {
                Err(why) => answers.push(Posted::Refused(why.to_string())),
                Ok(copy) => {
                    bytes = bytes.saturating_add(copy.body.len());
                    places.push(answers.len());
                    answers.push(in_the_way());
                    request.push(copy);
                }
            }
            if bytes >= REQUEST_BYTES_MAX {
                settle(&mut answers, &mut places, self.post_some(&mut request).await?);
                request.clear();
                bytes = 0;
            }
        }
        if !request.is_empty() {
            settle(&mut answers, &mut places, self.post_some(&mut request).await?);
        }
        Ok(answers)
    }

    async fn beat(&self, beat: &Heartbeat) -> Result<Option<Heartbeat>, PortError> {
        let attempted = || format!("failed to leave a beat in Redis {}", self.name());
        let text = self.copies.beat_text(beat).map_err(|why| PortError::lasting(attempted(), why))?;
        let mut script = self.beat.prepare_invoke();
        script.key(format!("{}members", self.prefix)).key(self.key("hb", &self.member.0));
        script.arg(&self.member.0).arg(text).arg(BEAT_TTL.as_secs()).arg(RECORD_BYTES_MAX);
        let run = |mut redis: ConnectionManager| async move { script.invoke_async::<Vec<u8>>(&mut redis).await };
        let earlier = self.server.call("leave a beat", run).await?;
        let earlier = self.copies.beat(&self.member, &earlier).ok();
        if beat.is_news(earlier.as_ref()) {
            let mut publish = cmd("PUBLISH");
            publish.arg(self.channel()).arg(format!("{} beat", self.member));
            let publish = |mut redis: ConnectionManager| async move { publish.query_async::<()>(&mut redis).await };
            // The beat is there. Who is not woken by it reads it a few seconds later.
            let _ = self.server.call("wake the others", publish).await;
        }
        Ok(earlier)
    }

    async fn read_of(&self, from: &Cursor, interest: &Interest) -> Result<News, PortError> {
        let (known, probe) = {
            let stamps = self.stamps();
            (stamps.newest, stamps.probe)
        };
        let mut script = self.read.prepare_invoke();
        script.key(format!("{}members", self.prefix)).arg(&self.prefix).arg(&self.member.0);
        script.arg(RECORDS_MAX).arg(ANSWER_BYTES_MAX).arg(RECORD_BYTES_MAX).arg(probe).arg(PROBED);
        script.arg(usize::from(interest.members.is_some())).arg(interest.again.len());
        for workload in &interest.again {
            script.arg(workload.to_string());
        }
        let others = interest.members.iter().flatten().filter(|member| !from.0.contains_key(*member));
        let is_wanted = |member: &Member| interest.members.as_ref().is_none_or(|members| members.contains(member));
        let begun = from.0.iter().filter(|(member, _)| is_wanted(member)).map(|(member, stamp)| (member, *stamp));
        for (member, stamp) in begun.chain(others.map(|member| (member, 0))) {
            script.arg(&member.0).arg(stamp);
        }
        let read = |mut redis: ConnectionManager| async move { script.invoke_async::<Answer>(&mut redis).await };
        let (stamp, counts, more, members, changes, problems) = self.server.call("read", read).await?;
        let [missing, looked_at, again] = [0, 1, 2].map(|at| counts.get(at).copied().unwrap_or_default());

        let lost = self.lost(known, number(&stamp), missing > 0, looked_at);
        let mut news = News { lost, more, again, ..News::default() };
        news.rejected.extend(problems.chunks_exact(3).map(problem));
        for change in changes.chunks_exact(5) {
            match self.heard(change) {
                Some(Ok(heard)) => news.heard.push(heard),
                Some(Err(why)) => news.rejected.push(why),
                None => {}
            }
        }
        let mut cursor = BTreeMap::new();
        for [member, stamp, beat] in members.chunks_exact(3).filter_map(|of| <&[Vec<u8>; 3]>::try_from(of).ok()) {
            let member = Member(String::from_utf8_lossy(member).into_owned());
            if !is_key_part(&member.0) {
                news.rejected.push("a name among the members that is none".to_owned());
                continue;
            }
            match self.copies.beat(&member, beat) {
                _ if beat.is_empty() => {}
                Ok(beat) => news.beats.push(beat),
                Err(why) => {
                    news.rejected.push(format!("the beat of {member}: {why}"));
                    news.disbelieved.insert(member.clone(), why.to_string());
                }
            }
            if member != self.member {
                cursor.insert(member, number(stamp));
            }
        }
        news.cursor = Cursor(cursor);
        news.elders = self.elders().await?;
        Ok(news)
    }

    async fn refuses(&self) -> Result<Option<String>, PortError> {
        let ask = |mut redis: ConnectionManager| async move {
            let mut said = String::new();
            for section in ["replication", "memory"] {
                match cmd("INFO").arg(section).query_async::<String>(&mut redis).await {
                    Ok(info) => said.push_str(&info),
                    // Forbidden, or renamed away: then it is not known.
                    Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm) => {}
                    Err(error) if error.code() == Some("ERR") => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(said)
        };
        let line = self.server.left();
        let refusal = role::refusal(&self.server.call("learn whether it takes writes", ask).await?);
        if refusal.is_some() {
            // A reader is refused nothing, and would look at a former primary for as long as it is up.
            self.server.leave_refusing(line);
        }
        Ok(refusal)
    }

    async fn forget(&self, member: &Member) -> Result<usize, PortError> {
        let mut script = self.forget.prepare_invoke();
        script.key(self.key("index", &member.0)).key(format!("{}members", self.prefix));
        script.arg(&self.prefix).arg(&member.0);
        let forget = |mut redis: ConnectionManager| async move { script.invoke_async::<usize>(&mut redis).await };
        self.server.call("forget a member", forget).await
    }

    fn wake_ups(&self) -> Flow<()> {
        wake::ups(self.server.clone(), self.channel(), format!("{} ", self.member))
    }
}

/// Said of a posting whose obstacle comes back as often as it is replaced.
fn in_the_way() -> Posted {
    Posted::Refused("another process posts under our name, from another ledger".to_owned())
}

/// Puts the answers of one request where they belong.
fn settle(answers: &mut [Posted], places: &mut Vec<usize>, settled: Vec<Posted>) {
    for (place, posted) in places.drain(..).zip(settled) {
        if let Some(answer) = answers.get_mut(place) {
            *answer = posted;
        }
    }
}

/// Runs all requests at once; if the server does not know their script, once more after telling it. Each is harmless when
/// repeated.
async fn run_all(
    requests: &Pipeline,
    script: &Script,
    redis: &mut ConnectionManager,
) -> RedisResult<Vec<Vec<Vec<u8>>>> {
    let is_unknown = |error: &RedisError| error.kind() == ErrorKind::Server(ServerErrorKind::NoScript);
    let answers: Vec<RedisResult<Vec<Vec<u8>>>> = requests.query_async(redis).await?;
    if !answers.iter().any(|answer| answer.as_ref().is_err_and(is_unknown)) {
        return answers.into_iter().collect();
    }
    script.load_async(redis).await?;
    requests.query_async::<Vec<RedisResult<Vec<Vec<u8>>>>>(redis).await?.into_iter().collect()
}

/// Whether a stamp cannot have been reached by counting from the one before.
fn leapt(known: u64, stamp: u64) -> bool {
    known != 0 && stamp.saturating_sub(known) > LEAP
}

/// A stamp; what is none counts as lost.
fn number(text: &[u8]) -> u64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
}
