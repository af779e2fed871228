//! The ledger in one Redis: the shape of the old program, for a single cluster, chosen and not the default (decision 3).
//!
//! | key | type | holds |
//! |---|---|---|
//! | `allclear:{name}:origin` | string | a random id: a ledger that was emptied is another one |
//! | `allclear:{name}:records` | hash | workload → `revision seq json`; `listed namespace` (or `*`) → `1`; `life` → json |
//! | `allclear:{name}:floors` | hash | shard → seq |
//! | `allclear:{name}:deliveries` | hash | id → json |
//! | `allclear:{name}:pin` | string | the members of the group, as json |
//!
//! The braces keep all five in one slot. None of them expires: under `volatile-*` policies keys with a time to live are
//! evicted first (docs/internals/measured.md). Every change is one script, which is refused once the origin is
//! another one than was opened: a Redis that lost its data under us must not be taken for one that never had any.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use ::redis::{Script, cmd};
use async_trait::async_trait;

use super::{fresh_origin, life_of, life_text, pin_of, pin_text, shard_of, unusable, unwritable};
use crate::adapters::redis::Server;
use domain::agreement::roster::Pin;
use domain::kernel::floor::Floor;
use domain::kernel::id::{Origin, Seq, WorkloadId};
use domain::notices::delivery::Delivery;
use domain::ports::{Ledger, LedgerContents, PinError, PortError, StoreError};
use domain::records::record::{Record, Records};
use domain::records::record_codec::{decode, encode};
use domain::watches::listed::Scope;
use domain::watches::lives::LifeNote;

/// Records sent in one script. Redis does nothing else meanwhile: 500 take it about 2 ms.
const RECORDS_AT_ONCE: usize = 500;

/// Entries asked for at a time when everything is read.
const SCAN_COUNT: usize = 500;

/// What a script answers when the ledger is another one than was opened.
const LOST: &str = "lost";
/// What a script answers for a record it stored or removed, or found so.
const DONE: &str = "done";
/// What a script answers for a record that was expected and is not there.
const NONE: &str = "none";

/// `judge_store` in Lua, for any number of records: KEYS origin, records, floors; ARGV origin, then for each record
/// workload, revision, the revision before it, seq, shard, value. Numbers are decimal strings compared length first:
/// Lua's own are exact to 2^53 only. Answers for each record: done, none, or the value that is in the way.
const STORE: &str = r"
local function above(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end
local function nonce(value)
  local known, record = pcall(cjson.decode, string.match(value, '^%d+ %d+ (.*)$'))
  return known and record.i or ''
end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {'lost'} end
local answers = {}
for i = 2, #ARGV, 6 do
  local workload, revision, before, seq, shard, value = unpack(ARGV, i, i + 5)
  local current = redis.call('HGET', KEYS[2], workload)
  local allowed
  if current then
    local known, counted = string.match(current, '^(%d+) (%d+) ')
    allowed = known == before and (above(seq, counted) or counted == seq and nonce(current) == nonce(value))
  else
    allowed = revision == '1' and above(seq, redis.call('HGET', KEYS[3], shard) or '0')
  end
  if allowed then redis.call('HSET', KEYS[2], workload, value) end
  answers[#answers + 1] = (allowed or current == value) and 'done' or current or 'none'
end
return answers
";

/// `judge_removal` in Lua: KEYS as above; ARGV origin, workload, revision, shard.
const REMOVE: &str = r"
local function above(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {'lost'} end
local current = redis.call('HGET', KEYS[2], ARGV[2])
if not current then return {'done'} end
local revision, seq = string.match(current, '^(%d+) (%d+) ')
if revision ~= ARGV[3] then return {current} end
if above(seq, redis.call('HGET', KEYS[3], ARGV[4]) or '0') then redis.call('HSET', KEYS[3], ARGV[4], seq) end
redis.call('HDEL', KEYS[2], ARGV[2])
return {'done'}
";

/// KEYS origin, pin; ARGV origin, the new pin, the one it replaces or nothing. Answers with what is there afterwards.
const PIN: &str = r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
if (redis.call('GET', KEYS[2]) or '') == ARGV[3] then redis.call('SET', KEYS[2], ARGV[2]) end
return redis.call('GET', KEYS[2]) or ''
";

/// KEYS origin, records; ARGV origin, then each scope that is listed.
const LIST: &str = r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
for i = 2, #ARGV do redis.call('HSET', KEYS[2], 'listed ' .. ARGV[i], '1') end
return 'done'
";

/// KEYS origin, records; ARGV origin, the entry, the new note, the one it replaces or nothing for any.
const NOTE: &str = r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
if ARGV[4] == '' or redis.call('HGET', KEYS[2], ARGV[2]) == ARGV[4] then redis.call('HSET', KEYS[2], ARGV[2], ARGV[3]) end
return 'done'
";

/// The entry of what the last life left.
const LIFE: &str = "life";

/// What begins the entry of a scope that is listed. It is kept among the records so that it goes where they go: a Redis that
/// evicted them must not say that all workloads are on record. No workload's name has a blank.
const LISTED_PREFIX: &str = "listed ";

/// A ledger in Redis.
#[derive(Debug)]
pub struct RedisLedger {
    server: Server,
    origin_key: String,
    records_key: String,
    floors_key: String,
    deliveries_key: String,
    pin_key: String,
    in_force_key: String,
    store: Script,
    remove: Script,
    origin: Mutex<Option<Origin>>,
}

impl RedisLedger {
    /// The ledger called `name` in `server`. Two clusters that share a Redis need two names.
    pub fn new(server: Server, name: &str) -> Self {
        let key = |part: &str| format!("allclear:{{{name}}}:{part}");
        Self {
            server,
            origin_key: key("origin"),
            records_key: key("records"),
            floors_key: key("floors"),
            deliveries_key: key("deliveries"),
            pin_key: key("pin"),
            in_force_key: key("settings"),
            store: Script::new(STORE),
            remove: Script::new(REMOVE),
            origin: Mutex::default(),
        }
    }

    /// Runs a script that changes what the ledger says of itself, under `key`, and returns its answer.
    async fn amend(&self, what: &str, script: &str, key: &str, arguments: &[String]) -> Result<String, PinError> {
        let origin = self.origin().await?;
        let script = Script::new(script);
        let mut script = script.prepare_invoke();
        script.key(&self.origin_key).key(key).arg(&origin.0).arg(arguments);
        let run = |mut redis: ::redis::aio::ConnectionManager| async move { script.invoke_async(&mut redis).await };
        let answer: String = self.server.call(what, run).await?;
        if answer == LOST {
            let cause = "the ledger was emptied or replaced";
            return Err(PinError::Lost(PortError::lasting(format!("failed to {what}"), cause)));
        }
        Ok(answer)
    }

    async fn find_or_create_origin(&self) -> Result<Origin, PortError> {
        let random = fresh_origin()?.0;
        let (set, get) = (command("SET", &[&self.origin_key, &random, "NX"]), command("GET", &[&self.origin_key]));
        self.server
            .call("open the ledger", |mut redis| async move {
                let _: Option<String> = set.query_async(&mut redis).await?;
                get.query_async::<String>(&mut redis).await
            })
            .await
            .map(Origin)
    }

    /// The origin of the open ledger; opens it first if necessary.
    async fn origin(&self) -> Result<Origin, PortError> {
        let known = self.origin.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(origin) = known {
            return Ok(origin);
        }
        let found = self.find_or_create_origin().await?;
        Ok(self.origin.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(found).clone())
    }

    async fn read_all(&self, origin: Origin) -> Result<LedgerContents, PortError> {
        let pin = self.pin_text().await?.and_then(|text| pin_of(&text).ok());
        let mut ledgered = LedgerContents { origin, pin, ..LedgerContents::default() };
        for (name, value) in self.scan("read the ledger", &self.records_key).await? {
            if let Some(scope) = name.strip_prefix(LISTED_PREFIX) {
                ledgered.listed.add(Scope::of(Some(scope)));
                continue;
            }
            if name == LIFE {
                ledgered.life = life_of(&value);
                continue;
            }
            let Ok(workload) = name.parse::<WorkloadId>() else { continue };
            match read(&workload, &value) {
                Ok(record) => drop(ledgered.records.insert(workload, Arc::new(record))),
                Err(error) => drop(ledgered.unreadable.insert(workload, error.to_string())),
            }
        }
        Ok(ledgered)
    }

    /// Reads a whole hash, some hundred entries at a time.
    async fn scan(&self, what: &str, key: &str) -> Result<BTreeMap<String, String>, PortError> {
        let mut entries = BTreeMap::new();
        let mut cursor = "0".to_owned();
        loop {
            let page = command("HSCAN", &[key, &cursor, "COUNT", &SCAN_COUNT.to_string()]);
            let (next, found): (String, Vec<(String, String)>) =
                self.server.call(what, |mut redis| async move { page.query_async(&mut redis).await }).await?;
            entries.extend(found);
            if next == "0" {
                return Ok(entries);
            }
            cursor = next;
        }
    }

    async fn run(&self, what: &str, script: &Script, arguments: &[String]) -> Result<Vec<String>, StoreError> {
        let origin = self.origin().await?;
        let mut script = script.prepare_invoke();
        script.key(&self.origin_key).key(&self.records_key).key(&self.floors_key).arg(&origin.0).arg(arguments);
        let answers: Vec<String> =
            self.server.call(what, |mut redis| async move { script.invoke_async(&mut redis).await }).await?;
        if answers.first().is_some_and(|answer| answer == LOST) {
            return Err(StoreError::Lost(PortError::lasting(
                format!("failed to {what} in Redis {}", self.server.shown()),
                "the ledger was emptied or replaced since it was opened; it must be opened again, which starts a new one",
            )));
        }
        Ok(answers)
    }

    async fn pin_text(&self) -> Result<Option<String>, PortError> {
        let get = command("GET", &[&self.pin_key]);
        self.server.call("read the members", |mut redis| async move { get.query_async(&mut redis).await }).await
    }

    /// Stores some records in one script, and answers for each.
    async fn store_some(&self, records: &[(&WorkloadId, &Record)]) -> Result<Vec<Result<(), StoreError>>, StoreError> {
        let mut sent = Vec::new();
        let mut arguments = Vec::new();
        for (workload, record) in records {
            let text = match encode(record) {
                Ok(text) => text,
                Err(error) => {
                    sent.push(Err(unwritable(workload, &error)));
                    continue;
                }
            };
            let Record { revision, seq, .. } = record;
            arguments.extend([
                workload.to_string(),
                revision.to_string(),
                revision.saturating_sub(1).to_string(),
                seq.to_string(),
                shard_of(workload).to_string(),
                format!("{revision} {seq} {text}"),
            ]);
            sent.push(Ok(()));
        }
        let what = match records {
            [(workload, _)] => format!("store the record of {workload}"),
            _ => format!("store {} records", records.len()),
        };
        let answers = if arguments.is_empty() { Vec::new() } else { self.run(&what, &self.store, &arguments).await? };
        let mut answers = answers.into_iter();
        let judge = |(sent, (workload, record)): (Result<(), StoreError>, &(&WorkloadId, &Record))| {
            sent?;
            judged(workload, Some(*record), answers.next().as_deref().unwrap_or(LOST))
        };
        Ok(sent.into_iter().zip(records).map(judge).collect())
    }
}

#[async_trait]
impl Ledger for RedisLedger {
    async fn open(&self) -> Result<LedgerContents, PortError> {
        let opened = self.read_all(self.find_or_create_origin().await?).await?;
        *self.origin.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened.origin.clone());
        Ok(opened)
    }

    async fn peek(&self) -> Result<Option<LedgerContents>, PortError> {
        let get = command("GET", &[&self.origin_key]);
        let origin: Option<String> =
            self.server.call("read the ledger", |mut redis| async move { get.query_async(&mut redis).await }).await?;
        match origin {
            Some(origin) => self.read_all(Origin(origin)).await.map(Some),
            None => Ok(None),
        }
    }

    async fn load(&self, workload: &WorkloadId) -> Result<Option<Record>, PortError> {
        let get = command("HGET", &[&self.records_key, &workload.to_string()]);
        let what = format!("read the record of {workload}");
        let found: Option<String> =
            self.server.call(&what, |mut redis| async move { get.query_async(&mut redis).await }).await?;
        found.map(|value| read(workload, &value)).transpose()
    }

    async fn store(&self, workload: &WorkloadId, record: &Record) -> Result<(), StoreError> {
        self.store_some(&[(workload, record)]).await?.pop().unwrap_or(Ok(()))
    }

    async fn store_all(&self, records: &Records) -> BTreeMap<WorkloadId, StoreError> {
        let records: Vec<_> = records.iter().map(|(workload, record)| (workload, record.as_ref())).collect();
        let (mut failed, mut down) = (BTreeMap::new(), None);
        for some in records.chunks(RECORDS_AT_ONCE) {
            // A Redis that is away is waited for once, and not once for each five hundred.
            let stored = match &down {
                Some(error) => Err(StoreError::clone(error)),
                None => self.store_some(some).await,
            };
            let answers = match stored {
                Ok(answers) => answers,
                Err(error) => {
                    down = Some(error.clone());
                    some.iter().map(|_| Err(error.clone())).collect()
                }
            };
            for ((workload, _), answer) in some.iter().zip(answers) {
                if let Err(error) = answer {
                    failed.insert((*workload).clone(), error);
                }
            }
        }
        failed
    }

    async fn remove(&self, workload: &WorkloadId, revision: u64) -> Result<(), StoreError> {
        let arguments = [workload.to_string(), revision.to_string(), shard_of(workload).to_string()];
        let answers = self.run(&format!("remove the record of {workload}"), &self.remove, &arguments).await?;
        judged(workload, None, answers.first().map_or(LOST, String::as_str))
    }

    async fn floor(&self, workload: &WorkloadId) -> Result<Floor, PortError> {
        let get = command("HGET", &[&self.floors_key, &shard_of(workload).to_string()]);
        let floor: Option<u64> =
            self.server.call("read a floor", |mut redis| async move { get.query_async(&mut redis).await }).await?;
        Ok(Seq(floor.unwrap_or_default()).into())
    }

    async fn pin(&self) -> Result<Option<Pin>, PinError> {
        Ok(self.pin_text().await?.map(|text| pin_of(&text)).transpose()?)
    }

    async fn store_pin(&self, pin: &Pin, over: Option<&Pin>) -> Result<bool, PinError> {
        let over = over.map(pin_text).transpose()?.unwrap_or_default();
        let there = self.amend("store the members", PIN, &self.pin_key, &[pin_text(pin)?, over]).await?;
        Ok(pin_of(&there).as_ref() == Ok(pin))
    }

    async fn store_listed(&self, scopes: &BTreeSet<Scope>) -> Result<(), PinError> {
        let scopes: Vec<String> = scopes.iter().map(|scope| scope.as_str().to_owned()).collect();
        self.amend("store what is listed", LIST, &self.records_key, &scopes).await.map(drop)
    }

    async fn store_life(&self, life: &LifeNote, over: Option<&LifeNote>) -> Result<(), PinError> {
        let over = over.map(life_text).transpose()?.unwrap_or_default();
        let arguments = [LIFE.to_owned(), life_text(life)?, over];
        self.amend("store the note of this life", NOTE, &self.records_key, &arguments).await.map(drop)
    }

    async fn in_force(&self) -> Result<Option<String>, PortError> {
        let get = command("GET", &[&self.in_force_key]);
        self.server
            .call("read the settings in force", |mut redis| async move { get.query_async(&mut redis).await })
            .await
    }

    async fn store_in_force(&self, text: &str) -> Result<(), PinError> {
        let set = command("SET", &[&self.in_force_key, text]);
        let what = "leave the settings in force";
        Ok(self.server.call(what, |mut redis| async move { set.query_async::<()>(&mut redis).await }).await?)
    }

    async fn deliveries(&self) -> Result<Vec<Delivery>, PortError> {
        let mut found = Vec::new();
        for (id, text) in self.scan("read the deliveries", &self.deliveries_key).await? {
            match serde_json::from_str(&text) {
                Ok(delivery) => found.push(delivery),
                // One that cannot be read (a newer program's) must not hold up the others.
                Err(error) => tracing::warn!(id, %error, "left a delivery alone that cannot be read"),
            }
        }
        Ok(found)
    }

    async fn store_delivery(&self, delivery: &Delivery) -> Result<(), PortError> {
        let what = format!("store the delivery {}", delivery.id);
        let text =
            serde_json::to_string(delivery).map_err(|error| PortError::lasting(format!("failed to {what}"), error))?;
        let set = command("HSET", &[&self.deliveries_key, &delivery.id, &text]);
        self.server.call(&what, |mut redis| async move { set.query_async::<()>(&mut redis).await }).await
    }

    async fn remove_delivery(&self, id: &str) -> Result<(), PortError> {
        let delete = command("HDEL", &[&self.deliveries_key, id]);
        let what = format!("forget the delivery {id}");
        self.server.call(&what, |mut redis| async move { delete.query_async::<()>(&mut redis).await }).await
    }
}

/// What one answer of a script means for a record that was to be stored, or removed.
///
/// # Errors
/// Another record is there, or none, or what is there cannot be read.
pub fn judged(workload: &WorkloadId, stored: Option<&Record>, answer: &str) -> Result<(), StoreError> {
    match answer {
        DONE => Ok(()),
        NONE => Err(StoreError::Conflict(None)),
        value => match read(workload, value)? {
            // The same record in other words, for example with a field this program leaves out.
            current if Some(&current) == stored => Ok(()),
            current => Err(StoreError::Conflict(Some(Box::new(current)))),
        },
    }
}

/// The record in `revision seq json`.
fn read(workload: &WorkloadId, value: &str) -> Result<Record, PortError> {
    let json = value.splitn(3, ' ').nth(2).unwrap_or_default();
    decode(json.as_bytes()).map_err(|error| unusable(workload, &error))
}

fn command(name: &str, arguments: &[&str]) -> ::redis::Cmd {
    let mut command = cmd(name);
    command.arg(arguments);
    command
}
