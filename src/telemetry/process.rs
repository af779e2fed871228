//! What Linux says of this process, under the names that all Prometheus clients use for it:
//! <https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>.
//!
//! Read at each scrape, from `/proc` alone (proc(5)). Where it is missing or says something else, the metric is left out: a wrong
//! number is worse than none. Not for what the program does; that is in the other files.

use std::fs;

/// Ticks of a second in `/proc`: `USER_HZ`, which is 100 on amd64 and arm64 (time(7)).
const TICKS_A_SECOND: u64 = 100;

/// What is read of `/proc`.
#[derive(Default)]
struct Read {
    /// `/proc/self/stat`.
    stat: String,
    /// `/proc/self/status`.
    status: String,
    /// `/proc/self/limits`.
    limits: String,
    /// `/proc/stat`.
    machine: String,
    /// Entries of `/proc/self/fd`.
    open_files: Option<usize>,
}

/// The metrics of this process, in OpenMetrics.
pub fn text() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    // Looking opens one more, which is closed afterwards.
    let open_files = fs::read_dir("/proc/self/fd").map(|found| found.count().saturating_sub(1)).ok();
    shown(&Read {
        stat: read("/proc/self/stat"),
        status: read("/proc/self/status"),
        limits: read("/proc/self/limits"),
        machine: read("/proc/stat"),
        open_files,
    })
}

fn shown(read: &Read) -> String {
    let mut text = String::new();
    let mut show = |name: &str, kind: &str, help: &str, value: Option<String>| {
        let ending = if kind == "counter" { "_total" } else { "" };
        if let Some(value) = value {
            let name = format!("process_{name}");
            text.push_str(&format!("# HELP {name} {help}.\n# TYPE {name} {kind}\n{name}{ending} {value}\n"));
        }
    };
    let cpu = field(&read.stat, 14).zip(field(&read.stat, 15)).map(|(user, system)| user.saturating_add(system));
    show("cpu_seconds", "counter", "Time of processors spent, in user and in system mode", cpu.map(seconds));
    let resident = size(&read.status, "VmRSS:").map(|bytes| bytes.to_string());
    show("resident_memory_bytes", "gauge", "Memory in use", resident);
    let addressed = size(&read.status, "VmSize:").map(|bytes| bytes.to_string());
    show("virtual_memory_bytes", "gauge", "Memory that is addressed, in use or not", addressed);
    show("open_fds", "gauge", "Open files and sockets", read.open_files.map(|count| count.to_string()));
    show("max_fds", "gauge", "Files and sockets that may be open", files_max(&read.limits));
    show("threads", "gauge", "Threads", field(&read.stat, 20).map(|count| count.to_string()));
    let booted = read.machine.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<u64>().ok());
    let started = booted.zip(field(&read.stat, 22));
    let started = started.map(|(booted, ticks)| seconds(booted.saturating_mul(TICKS_A_SECOND).saturating_add(ticks)));
    show("start_time_seconds", "gauge", "When this process began, in seconds since the Unix epoch", started);
    text
}

/// A field of `/proc/self/stat` by its number in proc(5). The second is the name of the program, in brackets, and may contain blanks
/// and brackets itself.
fn field(stat: &str, number: usize) -> Option<u64> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

fn seconds(ticks: u64) -> String {
    format!("{}.{:02}", ticks / TICKS_A_SECOND, ticks % TICKS_A_SECOND)
}

/// A size in `/proc/self/status`, which is in KiB, in bytes.
fn size(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1_024)
}

/// The soft limit; nothing where there is none.
fn files_max(limits: &str) -> Option<String> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let soft: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(soft.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proc_says_is_shown_in_seconds_and_bytes_whatever_the_program_is_called() {
        let read = Read {
            stat:
                "7 (all) (clear) S 1 7 7 0 -1 4194560 100 0 0 0 1234 66 0 0 20 0 9 0 500 1000 2000 18446744073709551615"
                    .to_owned(),
            status: "Name:\tallclear\nVmSize:\t   2048 kB\nVmRSS:\t     3 kB\n".to_owned(),
            limits: "Limit                     Soft Limit           Hard Limit           Units\n\
                     Max open files            1024                 524288               files\n"
                .to_owned(),
            machine: "cpu  1 2 3\nbtime 1700000000\n".to_owned(),
            open_files: Some(12),
        };
        let text = shown(&read);
        let values: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "process_cpu_seconds_total 13.00",
            "process_resident_memory_bytes 3072",
            "process_virtual_memory_bytes 2097152",
            "process_open_fds 12",
            "process_max_fds 1024",
            "process_threads 9",
            "process_start_time_seconds 1700000005.00",
        ];
        assert_eq!(values, expected);
        assert!(text.contains("# TYPE process_cpu_seconds counter\n"), "{text}");
    }

    #[test]
    fn what_proc_does_not_say_is_left_out() {
        assert_eq!(shown(&Read::default()), "");
        let odd =
            Read { limits: "Max open files            unlimited unlimited files\n".to_owned(), ..Read::default() };
        assert_eq!(shown(&odd), "");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_measured() {
        let text = text();
        for name in ["cpu_seconds_total", "resident_memory_bytes", "open_fds", "start_time_seconds"] {
            let start = format!("\nprocess_{name} ");
            let value = text.split_once(&start).and_then(|(_, rest)| rest.lines().next()).unwrap();
            assert!(value.parse::<f64>().is_ok(), "{name} {value}");
        }
        assert!(!text.contains("\nprocess_resident_memory_bytes 0\n"), "{text}");
    }
}
