//! The lock of a Terraform state that is in the way of a step, as the end of the step's log names it (`LockInfo.String` of
//! <https://github.com/hashicorp/terraform/blob/v1.9.0/internal/states/statemgr/locker.go>; OpenTofu writes the same).
//!
//! Not for anything else in a log: it may hold secrets.

use objects::repo::lock::Lock;

/// How the error begins (`internal/command/clistate/state.go` there).
const HELD: &str = "Error acquiring the state lock";

/// The lock that the log says another program holds; `None` where it mentions none.
pub(super) fn held(log: &str) -> Option<Lock> {
    log.contains(HELD).then(|| Lock::new(field(log, "ID:"), field(log, "Who:"), field(log, "Created:")))
}

/// The value of a line of the lock's, which a frame may stand before.
fn field<'a>(log: &'a str, name: &str) -> Option<&'a str> {
    Some(log.lines().find_map(|line| line.trim_start_matches(['│', '|', ' ']).strip_prefix(name))?.trim())
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
    fn a_lock_is_read_with_its_id_its_holder_and_its_time() {
        let framed = LOG.replace('\n', "\n│ ");
        let id = "5d9a5d1e-0d3f-4a3c-9f56-1a5f0c1e7d33";
        let lock = Lock::new(Some(id), Some("root@infra-0123456789ab-x7k2p"), Some("2026-11-26 05:00:01"));
        for log in [LOG, framed.as_str()] {
            assert_eq!(held(log), Some(lock.clone()));
        }
        assert_eq!(held("Error acquiring the state lock"), Some(Lock::new(None, None, None)));
    }

    #[test]
    fn nothing_else_of_a_log_is_kept() {
        assert_eq!(held("password: hunter2\nError: denied"), None);
        let hostile = LOG.replace("5d9a5d1e-0d3f-4a3c-9f56-1a5f0c1e7d33", "$(rm -rf /)");
        assert!(!format!("{:?}", held(&hostile).unwrap()).contains("rm -rf"));
        let secret = LOG.replace("Error message: resource temporarily unavailable", "token=hunter2");
        assert!(!format!("{:?}", held(&secret).unwrap()).contains("hunter2"));
    }
}
