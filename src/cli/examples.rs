//! An example for the `--help` of every command, and the name that a person has typed: `allclear`, or `kubectl allclear` where
//! kubectl runs it as its plugin `kubectl-allclear` (<https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/>).
//!
//! Not for what commands do; that is in `arguments`. `docs/commands.md` shows the same examples, which a test holds it to.

use std::ffi::OsStr;
use std::path::Path;

use clap::Command;

/// What the program is called as a plugin of kubectl.
const PLUGIN: &str = "kubectl-allclear";

/// Each command by its path, with its example.
const EXAMPLES: &[(&str, &str)] = &[
    ("run", "allclear run --dry-run --kubeconfig ~/.kube/config --ledger-namespace allclear"),
    ("audit", "allclear audit eu-1.log us-1.log"),
    ("demo", "allclear demo --clusters 3"),
    ("check", "allclear check --pre --config config.toml"),
    ("explain", "allclear explain shop/web --watch"),
    ("wait", "kubectl apply -f web.yaml && allclear wait shop/web --for purged --timeout 20m"),
    ("purge", "allclear purge shop/web --paths '/index.html,/news/*' --wait"),
    ("history", "allclear history shop/web"),
    ("version", "allclear version --server http://localhost:8081"),
    ("status", "allclear status --watch"),
    ("mcp", "allclear mcp --context production"),
    ("group", "allclear group show"),
    ("group show", "allclear group show -o json"),
    ("group add", "allclear group add eu-2"),
    ("group forget", "allclear group forget eu-2"),
    ("group leave", "allclear group leave"),
    ("ledger", "allclear ledger show"),
    ("ledger show", "allclear ledger show shop/web"),
    ("ledger adopt", "allclear ledger adopt --all"),
    ("pipeline", "allclear pipeline list"),
    ("pipeline list", "allclear pipeline list -n shop"),
    ("pipeline approve", "allclear pipeline approve shop/web prod"),
    ("pipeline promote", "allclear pipeline promote shop/web prod --revision 1.4.2"),
    ("pipeline history", "allclear pipeline history shop/web"),
    ("pipeline poke", "allclear pipeline poke shop/web"),
    ("pipeline suspend", "allclear pipeline suspend shop/web --reason 'the sale'"),
    ("pipeline resume", "allclear pipeline resume --all"),
    ("repo", "allclear repo list"),
    ("repo list", "allclear repo list -n platform"),
    ("repo approve", "allclear repo approve platform/infra"),
    ("repo run", "allclear repo run platform/infra"),
    ("repo unlock", "allclear repo unlock platform/infra"),
    ("repo keep", "allclear repo keep platform/infra"),
    ("repo logs", "allclear repo logs platform/infra --step plan"),
    ("repo history", "allclear repo history platform/infra"),
    ("repo poke", "allclear repo poke platform/infra"),
    ("repo suspend", "allclear repo suspend platform/infra --reason 'the sale'"),
    ("repo resume", "allclear repo resume platform/infra"),
    ("webhook", "allclear webhook list"),
    ("webhook list", "allclear webhook list --server http://localhost:8081"),
    ("webhook test", "allclear webhook test ci --config config.toml"),
    ("webhook resend", "allclear webhook resend shop/web --receiver ci"),
    ("config", "allclear config validate"),
    ("config show", "allclear config show --config config.toml"),
    ("config validate", "allclear config validate --config config.toml"),
    ("crds", "allclear crds pipeline | kubectl apply -f -"),
    ("completion", "allclear completion bash > ~/.local/share/bash-completion/completions/allclear"),
];

/// The command line as it was typed, with an example for each command.
pub(super) fn dressed(command: Command, typed: Option<&OsStr>) -> Command {
    let name = typed.and_then(|typed| Path::new(typed).file_stem());
    let named = if name == Some(OsStr::new(PLUGIN)) { command.bin_name("kubectl allclear") } else { command };
    ordered(named).mut_subcommands(|one| with_example(one, ""))
}

/// Options that stand first in every help, in this order.
const FIRST: [&str; 2] = ["namespace", "all_namespaces"];

/// Options that stand last. Between them are those that a command has for itself.
const LAST: [&str; 14] = [
    "dry_run",
    "yes",
    "wait",
    "timeout",
    "watch",
    "output",
    "ledger_namespace",
    "server",
    "config",
    "kubeconfig",
    "context",
    "color",
    "help",
    "version",
];

/// The options of every command in one order, so that a reader finds them where they were.
fn ordered(command: Command) -> Command {
    let own = FIRST.len();
    let mut so_far = own;
    command.mut_args(|arg| {
        let place = |names: &[&str]| names.iter().position(|name| *name == arg.get_id().as_str());
        so_far += 1;
        let at = match (place(&FIRST), place(&LAST)) {
            (Some(at), _) => at,
            (None, Some(at)) => OWN_MAX + at,
            (None, None) => so_far,
        };
        if arg.is_positional() { arg } else { arg.display_order(at) }
    })
}

/// More arguments than a command has.
const OWN_MAX: usize = 100;

/// The example of a command, by the names that lead to it.
pub(super) fn example(path: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(known, _)| *known == path).map(|(_, example)| *example)
}

fn with_example(command: Command, above: &str) -> Command {
    let path = format!("{above} {}", command.get_name()).trim().to_owned();
    let before = command.get_after_help().map(ToString::to_string);
    let help = match (before, example(&path)) {
        (before, None) => before,
        (Some(before), Some(_)) if before.starts_with("Examples:") => Some(before),
        (None, Some(example)) => Some(format!("Example:\n  {example}")),
        (Some(before), Some(example)) => Some(format!("{before}\n\nExample:\n  {example}")),
    };
    let command = match help {
        Some(help) => command.after_help(help),
        None => command,
    };
    ordered(command).mut_subcommands(|one| with_example(one, &path))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// The page that shows every command.
    const PAGE: &str = include_str!("../../docs/commands.md");

    /// Every command that people see, by its path.
    fn all(command: &Command, above: &str, into: &mut Vec<(String, Command)>) {
        for one in command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help") {
            let path = format!("{above} {}", one.get_name()).trim().to_owned();
            into.push((path.clone(), one.clone()));
            all(one, &path, into);
        }
    }

    #[test]
    fn every_command_has_an_example_that_is_understood_and_is_on_the_page() {
        let mut commands = Vec::new();
        all(&dressed(Cli::command(), None), "", &mut commands);
        assert!(commands.len() > 25, "{}", commands.len());
        for (path, command) in commands {
            let example = example(&path).unwrap_or_else(|| panic!("{path} has no example"));
            let help = command.clone().render_help().to_string();
            let shown =
                ["Example", "Examples"].map(|heading| help.matches(&format!("{heading}:\n  {example}")).count());
            assert_eq!(shown.iter().sum::<usize>(), 1, "{path}: {help}");
            assert_eq!(help.matches("\nExample").count(), 1, "{path}: {help}");
            assert!(PAGE.contains(&format!("`allclear {path}`")), "{path} is missing in docs/commands.md");
            assert!(PAGE.contains(example), "docs/commands.md lacks: {example}");
            let own = example.rsplit("&& ").next().and_then(|own| own.split(" | ").next()).unwrap_or_default();
            let own = own.split(" > ").next().unwrap_or_default().replace('\'', "");
            // Blanks within quotes are one word too many.
            let words = own.split(' ').filter(|word| *word != "sale");
            let parsed = dressed(Cli::command(), None).try_get_matches_from(words);
            assert!(parsed.is_ok(), "{own}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn options_stand_in_one_order_everywhere() {
        let mut commands = Vec::new();
        all(&dressed(Cli::command(), None), "", &mut commands);
        let order = [
            "--namespace",
            "--all-namespaces",
            "--timeout",
            "--watch",
            "--output",
            "--kubeconfig",
            "--color",
            "--help",
        ];
        let mut seen = std::collections::BTreeSet::new();
        for (path, _) in commands {
            let words = ["allclear"].into_iter().chain(path.split(' ')).chain(["--help"]);
            let help = dressed(Cli::command(), None).try_get_matches_from(words).unwrap_err().to_string();
            let heads = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
            let options = heads.filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")));
            let places: Vec<usize> =
                options.filter_map(|option| order.iter().position(|name| *name == option)).collect();
            assert!(places.is_sorted() && places.len() >= 3, "{path}: {help}");
            seen.extend(places);
        }
        assert_eq!(seen.len(), order.len(), "each of them is an option of some command");
    }

    #[test]
    fn as_a_plugin_of_kubectl_it_shows_what_was_typed() {
        let usage = |typed: &str| {
            let command = dressed(Cli::command(), Some(OsStr::new(typed)));
            command.try_get_matches_from([typed, "wait", "--help"]).unwrap_err().to_string()
        };
        let plugin = usage("/usr/local/bin/kubectl-allclear");
        assert!(plugin.contains("Usage: kubectl allclear wait "), "{plugin}");
        assert!(usage("./allclear").contains("Usage: allclear wait "));
    }
}
