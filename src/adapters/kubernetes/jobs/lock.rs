//! The lock of a Terraform state that is in the way of a step, as the end of the step's log names it (`LockInfo.String` of
//! <https://github.com/hashicorp/terraform/blob/v1.9.0/internal/states/statemgr/locker.go>; OpenTofu writes the same).
//!
//! Not for anything else in a log: it may hold secrets.

/// How the error begins (`internal/command/clistate/state.go` there).
const HELD: &str = "Error acquiring the state lock";

/// Longest value that is repeated, in bytes: an id has 36, and a holder is `user@host`.
const VALUE_BYTES_MAX: usize = 64;

/// `2026-11-26 05:00:01` of a time as Go prints it.
const TIME_BYTES: usize = 19;

/// The owner of the lock, its time, and the cure; `None` where the log mentions no lock.
pub(super) fn held(log: &str) -> Option<String> {
    if !log.contains(HELD) {
        return None;
    }
    let wait = "runner.lockTimeout waits for it";
    let Some(id) = field(log, "ID:") else {
        return Some(format!("another program holds the lock of the state, and the log names it; {wait}"));
    };
    let holder = field(log, "Who:").unwrap_or("an unnamed program");
    let since = field(log, "Created:").and_then(|time| time.get(..TIME_BYTES)).unwrap_or("an unknown time");
    Some(format!(
        "{holder} holds lock {id} of the state since {since} UTC; {wait}; if nothing runs there any more: terraform force-unlock {id}"
    ))
}

/// The value of a line of the lock's, which a frame may stand before.
fn field<'a>(log: &'a str, name: &str) -> Option<&'a str> {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "-_.:/@\\+ ".contains(one);
    let value = log.lines().find_map(|line| line.trim_start_matches(['│', '|', ' ']).strip_prefix(name))?.trim();
    (!value.is_empty() && value.len() <= VALUE_BYTES_MAX && value.chars().all(is_plain)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Terraform 1.9 writes it with `-no-color`, and framed without.
    const LOG: &str = "
Error: Error acquiring the state lock

Error message: resource temporarily unavailable
Lock Info:
  ID:        5d9a5d1e-0d3f-4a3c-9f56-1a5f0c1e7d33
  Path:      terraform.tfstate
  Operation: OperationTypePlan
  Who:       root@infra-0123456789ab-x7k2p
  Version:   1.9.8
  Created:   2026-11-26 05:00:01.123456789 +0000 UTC
  Info:      
";

    #[test]
    fn a_lock_is_named_by_its_id_its_holder_and_its_time_with_the_cure() {
        let framed = LOG.replace('\n', "\n│ ");
        for log in [LOG, framed.as_str()] {
            let said = held(log).unwrap();
            for words in [
                "root@infra-0123456789ab-x7k2p holds lock 5d9a5d1e-0d3f-4a3c-9f56-1a5f0c1e7d33",
                "since 2026-11-26 05:00:01 UTC",
                "terraform force-unlock 5d9a5d1e-0d3f-4a3c-9f56-1a5f0c1e7d33",
                "runner.lockTimeout",
            ] {
                assert!(said.contains(words), "{said}");
            }
        }
        assert!(held("Error acquiring the state lock").unwrap().contains("the log names it"));
    }

    #[test]
    fn nothing_else_of_a_log_is_repeated() {
        assert_eq!(held("password: hunter2\nError: denied"), None);
        let hostile = LOG.replace("5d9a5d1e-0d3f-4a3c-9f56-1a5f0c1e7d33", "$(rm -rf /)");
        assert!(!held(&hostile).unwrap().contains("rm -rf"));
        let secret = LOG.replace("Error message: resource temporarily unavailable", "token=hunter2");
        assert!(!held(&secret).unwrap().contains("hunter2"));
    }
}
