//! Which words may stand where, without a cluster; with one it is tried in `tests/process/completion.rs`.

use super::*;

fn command() -> Command {
    let mut command = examples::dressed(Cli::command(), None);
    command.build();
    command
}

fn place(line: &str) -> Place {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    Place::of(&command(), &words)
}

fn fixed(line: &str) -> Vec<String> {
    let place = place(line);
    let words = place.fixed.into_iter().map(|one| one.word);
    words.filter(|word| word.starts_with(&place.word)).collect()
}

#[test]
fn commands_options_and_values_are_those_that_are_understood() {
    assert_eq!(fixed("webhook "), ["list", "test", "resend", "help"]);
    assert_eq!(fixed("webhook resend --rec"), ["--receiver"]);
    assert_eq!(fixed("status -o "), ["table", "json"]);
    assert_eq!(fixed("status --output=j"), ["json"]);
    assert_eq!(fixed("completion f"), ["fish"]);
    assert!(fixed("webhook resend --event purge.c").contains(&"purge.completed".to_owned()));
    assert!(
        fixed("").contains(&"explain".to_owned()) && !fixed("").contains(&crate::cli::arguments::COMPLETE.to_owned())
    );
    assert!(fixed("group show --kube").contains(&"--kubeconfig".to_owned()), "options of all commands");
    assert_eq!(fixed("status nothing else here "), Vec::<String>::new());
}

#[test]
fn each_name_is_looked_for_where_the_command_takes_it() {
    for (line, source) in [
        ("explain sh", Source::Workloads),
        ("explain pipeline/sh", Source::Pipelines),
        ("explain repo/", Source::Repos),
        ("purge --paths /a sh", Source::Workloads),
        ("ledger show ", Source::Workloads),
        ("webhook resend ", Source::Workloads),
        ("webhook test ", Source::Receivers),
        ("webhook resend shop/web --receiver ", Source::Receivers),
        ("pipeline poke ", Source::Pipelines),
        ("pipeline approve shop/web ", Source::Environments),
        ("repo logs ", Source::Repos),
        ("group forget ", Source::Members),
        ("status -n ", Source::Namespaces),
        ("status --namespace=sh", Source::Namespaces),
        ("history --ledger-namespace ", Source::Namespaces),
        ("--context ", Source::Contexts),
        ("run --config ", Source::Files),
    ] {
        assert_eq!(place(line).source, Some(source), "{line}");
    }
    for line in ["status ", "wait shop/web ", "wait --timeout ", "check --wait", "nonsense ", "--nonsense=x"] {
        assert_eq!(place(line).source, None, "{line}");
    }
}

#[test]
fn what_was_given_before_is_known() {
    let place = place("--context eu history -n shop --kubeconfig=/a/b -o json w");
    let given: Vec<(&str, &str)> = place.given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(given, [("context", "eu"), ("kubeconfig", "/a/b"), ("namespace", "shop"), ("output", "json")]);
    assert_eq!((place.word.as_str(), place.source), ("w", Some(Source::Workloads)));
}

#[test]
fn without_a_cluster_the_answer_is_empty_and_says_no_word_of_it() {
    let words: Vec<String> = ["status", "--kubeconfig", "/does/not/exist", "-n", ""].map(str::to_owned).to_vec();
    assert_eq!(answer(&command(), &words, BTreeMap::new()), ":4\n");
    assert_eq!(answer(&command(), &["run".to_owned(), "--config".to_owned(), String::new()], BTreeMap::new()), ":0\n");
}
