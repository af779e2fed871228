//! `group.*`: the members, their servers and the keys their records are signed with.

use std::collections::BTreeSet;
use std::time::Duration;

use super::address::{RedisAddress, Refused};
use super::mask::Secret;
use super::problem::Place;
use super::values::{DAY, MINUTE, SECOND, Values};
use super::webhooks::ReadFile;
use super::{AbsentPolicy, Group, Namespaces, Redis, Watch};
use kernel::id::{config_hash, is_key_part};
use kernel::mask::shown;
use kernel::text::unread;
use purge::bounds::policy::AtTimeout;

/// Members of a group at most: a vector has one component for each, and a record (4 KiB) holds several vectors.
const REMOTES_MAX: usize = 32;

/// Prefixes of repositories at most: one or two for each region.
const PREFIXES_MAX: usize = 50;

/// Bytes of the group's key at least: what HMAC-SHA256 needs (RFC 2104, 3: "not less than L", the 32 bytes of the hash).
const GROUP_KEY_BYTES_MIN: usize = 32;

/// What a derived name begins with, so that it is not `default` where the namespace is.
const DERIVED: &str = "ns-";

/// Keys of a group: the present one, and the one before or after it.
const GROUP_KEYS_MAX: usize = 2;

pub(super) fn read(values: &mut Values<'_>, redis: Option<&Redis>, read: ReadFile<'_>) -> Option<Group> {
    let name = values.parsed("group.name", "name", name_in_keys);
    let member = values.optional("group.member", "name", name_in_keys);
    let members = members(values, member.as_ref().and_then(Option::as_deref));
    let (remotes, only_own) = remotes(values, redis).unzip();
    let timeout = values.duration("group.timeout", SECOND..=7 * DAY);
    let takeover = values.duration("group.takeover", Duration::from_millis(100)..=5 * MINUTE);
    let policy = values.choice("group.policy", &[("wait", AtTimeout::Wait), ("skip", AtTimeout::Skip)]);
    let absent = values.choice("group.absent", &[("wait", AbsentPolicy::Wait), ("ignore", AbsentPolicy::Ignore)]);
    let keys = group_keys(values, read);
    let unsigned = values.truth("group.unsigned");
    retired_prefixes(values)?;
    Some(Group {
        name: name?,
        derived: None,
        member: member?,
        remotes: remotes?,
        only_own: only_own?,
        members: members?,
        timeout: timeout?,
        takeover: takeover?,
        policy: policy?,
        absent: absent?,
        keys: keys?,
        unsigned: unsigned?,
    })
}

/// `group.repository_prefixes` is still accepted, so that no configuration breaks: of a repository only the last segment counts
/// between members now (decision 51).
fn retired_prefixes(values: &mut Values<'_>) -> Option<()> {
    let key = "group.repository_prefixes";
    let prefix = |text: &str| match text.is_empty() || text.contains(char::is_whitespace) {
        true => Err(Refused::new("is not a prefix", "remove it: the setting has no effect any more")),
        false => Ok(text.to_owned()),
    };
    let given = values.list(key, "list of prefixes", PREFIXES_MAX, prefix)?;
    if !given.is_empty() {
        let place = values.place(key);
        let why = "has no effect: between members an image is compared by the last segment of its repository and by its tag; \
                   remove it";
        values.findings.warn(&place, key, why);
    }
    Some(())
}

/// What the group is called where the configuration is that of the old program, which knew groups by no name.
pub(super) fn derive(values: &Values<'_>, watch: Option<&Watch>, group: Option<&mut Group>) {
    let (Some(Watch { namespaces: Namespaces::Listed(namespaces) }), Some(group)) = (watch, group) else { return };
    let is_old = |key: &str, name: &str| values.place(key) == Place::Environment(name.to_owned());
    let of_group = values.given.values.keys().filter(|key| key.starts_with("group.") && *key != "group.remotes");
    let others_are_default = of_group.into_iter().all(|key| values.place(key) == Place::Default);
    if is_old("watch.namespaces", "NAMESPACE") && is_old("group.remotes", "REMOTE_REDIS_HOSTS") && others_are_default {
        group.derived = Some(name_of(namespaces));
    }
}

/// The name of the group of those who watch these namespaces. No namespace has a dot in its name.
fn name_of(namespaces: &BTreeSet<String>) -> String {
    let joined = namespaces.iter().map(String::as_str).collect::<Vec<_>>().join(".");
    let name = format!("{DERIVED}{joined}");
    if is_key_part(&name) { name } else { format!("{DERIVED}{}", config_hash([("", joined.as_str())])) }
}

/// The names of all members. How many there must be is only known when the servers have said who they are.
fn members(values: &mut Values<'_>, own: Option<&str>) -> Option<BTreeSet<String>> {
    let key = "group.members";
    let listed = values.list(key, "list of names", REMOTES_MAX, name_in_keys)?;
    let members: BTreeSet<String> = listed.iter().cloned().collect();
    let refused = match (members.len(), own) {
        (0, _) => return Some(members),
        (number, _) if number < listed.len() => {
            Refused::new("names a member twice", "write each name once; two clusters need two names")
        }
        (1, _) => Refused::new("names one member", "name all members of the group, or leave it empty"),
        (_, Some(own)) if !members.contains(own) => {
            Refused::new("does not name this member", "add group.member to it, or correct group.member")
        }
        (_, _) => return Some(members),
    };
    values.refuse(key, None, refused)
}

/// The keys of the group, one a line: the first signs, both verify.
fn group_keys(values: &mut Values<'_>, read: ReadFile<'_>) -> Option<Vec<Secret<Vec<u8>>>> {
    let key = "group.key_file";
    let Some(path) = values.file(key)? else { return Some(Vec::new()) };
    let value = Some(shown(&path.to_string_lossy()));
    let text = match read(&path) {
        Ok(text) => text,
        Err(error) => {
            let message = format!("names a file that cannot be read: {}", unread(&error));
            return values.refuse(
                key,
                value,
                Refused::new(message, "mount the key there, or leave group.key_file empty"),
            );
        }
    };
    let keys: Vec<&str> = text.trim().lines().map(str::trim).collect();
    let shortest = keys.iter().map(|key| key.len()).min().unwrap_or_default();
    if keys.len() > GROUP_KEYS_MAX {
        let message = format!("names a file with {} lines", keys.len());
        let fix =
            "write one key, or two while the key is changed, each on a line of its own; the first signs, both verify";
        return values.refuse(key, value, Refused::new(message, fix));
    }
    if shortest < GROUP_KEY_BYTES_MIN {
        let message = format!("names a file with a key of {shortest} bytes");
        let fix =
            format!("write at least {GROUP_KEY_BYTES_MIN} random letters and digits into it, each key on one line");
        return values.refuse(key, value, Refused::new(message, fix));
    }
    Some(keys.into_iter().map(|key| Secret::new(key.as_bytes().to_vec())).collect())
}

/// The other members' servers, and whether only our own was given. The old program's list was the same in every cluster, so ours
/// may be among them.
fn remotes(values: &mut Values<'_>, redis: Option<&Redis>) -> Option<(Vec<RedisAddress>, bool)> {
    let key = "group.remotes";
    let accepts = "list of Redis addresses: `host`, `host:port`, `host__port` or URL";
    let listed = values.list(key, accepts, REMOTES_MAX, RedisAddress::parse)?;
    // Without our own address it is unknown whether one of the servers is ours, and so how many members there are.
    // An address that was refused is reported already.
    let own = redis.map(|redis| redis.url.as_ref());
    if own == Some(None) && !listed.is_empty() {
        let fix = "set redis.url (REDIS_HOST) to the Redis of this cluster, or leave group.remotes empty";
        return values.refuse(key, None, Refused::new("is set, but our own Redis is not", fix));
    }
    let own = own.flatten().map(RedisAddress::board);
    let given = listed.len();
    let mut seen = BTreeSet::new();
    let mut remotes = listed;
    remotes.retain(|remote| seen.insert(remote.board()));
    let place = values.place(key);
    if remotes.len() < given {
        values.findings.warn(&place, key, "names a server twice; it is counted once");
    }
    remotes.retain(|remote| Some(remote.board()) != own);
    let only_own = remotes.is_empty() && given > 0;
    if only_own {
        let message =
            "names only our own Redis: this cluster works alone, and purges nothing while another one reports there";
        values.findings.warn(&place, key, message);
    }
    Some((remotes, only_own))
}

/// The name of a member or a group.
fn name_in_keys(text: &str) -> Result<String, Refused> {
    if is_key_part(text) {
        Ok(text.to_owned())
    } else {
        Err(Refused::new("is not a name", "write letters, digits, hyphens, underscores and dots, 63 at most"))
    }
}

pub(super) fn check(values: &mut Values<'_>, group: Option<&Group>) {
    let Some(group) = group else { return };
    if group.remotes.is_empty() {
        if !group.members.is_empty() {
            let place = values.place("group.members");
            let message = format!(
                "names {} members, and group.remotes (REMOTE_REDIS_HOSTS) names the Redis of no other one: nothing is purged before \
                 it does; for a cluster that works alone, leave both empty",
                group.members.len()
            );
            values.findings.warn(&place, "group.members", message);
        }
        return;
    }
    // Two of the addresses may still lead to one server, but no address leads to two.
    let servers = 1 + group.remotes.len();
    if group.members.len() > servers {
        let message = format!(
            "names {} members, and {servers} different Redis servers are configured: redis.url and those in group.remotes; \
             each member has one of its own",
            group.members.len()
        );
        let fix = "add the other members' Redis to group.remotes (REMOTE_REDIS_HOSTS), or take the members that have retired \
                   out of group.members";
        let place = values.place("group.members");
        values.findings.refuse(&place, "group.members", None, message, fix);
    }
    if let Some(warning) = group.trust().warning() {
        let place = values.place("group.key_file");
        values.findings.warn(&place, "group.key_file", format!("is not set, so {warning}"));
    }
}
