//! Whether a server takes writes, by what it says of itself (`INFO`). A reader cannot find out by trying.

use super::super::advice;

/// Why the server takes no writes, in the words of the refusal that a write would get; `None` if it takes them, or does not
/// say. `info` is its answer to `INFO replication` and `INFO memory`.
/// <https://redis.io/docs/latest/commands/info/>
pub fn refusal(info: &str) -> Option<String> {
    let field = |name: &str| {
        let mut lines = info.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        lines.next().map(str::trim)
    };
    let number = |name: &str| field(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    if field("role") == Some("slave") && field("slave_read_only") != Some("0") {
        let of =
            field("master_host").map_or_else(String::new, |host| format!(" (of {host}:{})", number("master_port")));
        return Some(format!("READONLY: {}{of}", advice("READONLY")));
    }
    // With another policy it evicts instead: records have no expiry, so only under allkeys-* something of ours goes.
    let refuses =
        field("maxmemory_policy").is_none_or(|policy| policy == "noeviction" || policy.starts_with("volatile"));
    let (used, most) = (number("used_memory"), number("maxmemory"));
    (refuses && most > 0 && used >= most).then(|| format!("OOM: {}", advice("OOM")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_and_a_full_server_refuse_writes_and_others_do_not() {
        let replica = "role:slave\r\nmaster_host:10.0.0.9\r\nmaster_port:6380\r\nslave_read_only:1\r\n";
        let words = refusal(replica).unwrap();
        assert!(words.starts_with("READONLY: ") && words.ends_with("(of 10.0.0.9:6380)"), "{words}");
        assert_eq!(refusal(&replica.replace("only:1", "only:0")), None);
        let full = "role:master\r\nused_memory:2000\r\nmaxmemory:1000\r\nmaxmemory_policy:noeviction\r\n";
        assert!(refusal(full).unwrap().starts_with("OOM: "));
        for well in [full.replace(":2000", ":999"), full.replace(":1000", ":0"), String::new()] {
            assert_eq!(refusal(&well), None, "{well}");
        }
    }
}
