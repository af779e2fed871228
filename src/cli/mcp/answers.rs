//! What the tools answer: what the commands of their names print, with `-o json` and without. Each call reads the
//! configuration and the kubeconfig afresh and connects, as a command does, so a token that was renewed counts from then on.
//!
//! Not for how long a call may take, nor how many there are; that is `serve`.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use super::serve::Answered;
use super::tools::Asked;
use crate::adapters::edge::judged;
use crate::adapters::kubernetes;
use crate::adapters::kubernetes::histories::KubernetesHistories;
use crate::adapters::kubernetes::objects::{PipelineKind, RepoKind};
use crate::cli::answer::{Outcome, Output, answer, invalid, refused};
use crate::cli::command_kind::{is_meant, named};
use crate::cli::connect::{clients, sources};
use crate::cli::objects::ShownKind;
use crate::cli::{explain, history, objects as of_ours, status};
use crate::config::Inputs;
use crate::http::Verdict;
use crate::looking::workloads::not_found;
use crate::looking::{Question, Section, Sources, peek};
use ::objects::pipeline::spec::Until;
use kernel::text::visible;

/// Bytes of an answer at most, in each of its two forms. 256 KiB are some 80,000 tokens: more than a model can use.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Who asks: all that a command has from its caller.
pub struct Caller<'a> {
    pub inputs: &'a Inputs<'a>,
    pub kubernetes: kubernetes::Options,
}

/// Answers a question.
pub async fn answered(caller: &Caller<'_>, asked: Asked) -> Answered {
    let outcome = match asked {
        Asked::Status { namespace } => {
            looked(caller, (namespace, None), async |sources, question| {
                status::status(&status::Asked::Sources(sources, question.namespace.as_deref()), Output::Both).await
            })
            .await
        }
        Asked::Explain { host: Some(host), .. } => {
            looked(caller, (None, None), async |sources, _| explain::about_host(sources, &host, Output::Both).await)
                .await
        }
        Asked::Explain { name, namespace, host: None } => explained(caller, name, namespace).await,
        Asked::History { name, limit, .. } if is_meant::<PipelineKind>(&name) => {
            past::<PipelineKind>(caller, &name, limit).await
        }
        Asked::History { name, limit, .. } if is_meant::<RepoKind>(&name) => {
            past::<RepoKind>(caller, &name, limit).await
        }
        Asked::History { name, namespace, .. } => {
            looked(caller, (namespace, Some(name)), async |sources, question| {
                history::history(sources, question, Output::Both).await
            })
            .await
        }
        Asked::Fresh { name, namespace, until } => {
            looked(caller, (namespace, Some(name)), async |sources, question| fresh(sources, question, until).await)
                .await
        }
    };
    read(outcome)
}

async fn explained(caller: &Caller<'_>, name: Option<String>, namespace: Option<String>) -> Outcome {
    match name {
        Some(name) if is_meant::<PipelineKind>(&name) => one::<PipelineKind>(caller, &name).await,
        Some(name) if is_meant::<RepoKind>(&name) => one::<RepoKind>(caller, &name).await,
        name => {
            looked(caller, (namespace, name), async |sources, question| {
                explain::explain(sources, question, Output::Both).await
            })
            .await
        }
    }
}

/// Has a question answered by all that can be looked at.
async fn looked(
    Caller { inputs, kubernetes }: &Caller<'_>,
    (namespace, name): (Option<String>, Option<String>),
    answer: impl AsyncFnOnce(&Sources, &Question) -> Outcome,
) -> Outcome {
    match sources(inputs, kubernetes, namespace.as_deref(), Output::Both).await {
        Ok((sources, _)) => answer(&sources, &Question { namespace, name }).await,
        Err(outcome) => outcome,
    }
}

/// What `allclear explain KIND/NS/NAME` prints.
async fn one<K: ShownKind>(caller: &Caller<'_>, name: &str) -> Outcome {
    let id = match named::<K>(name) {
        Ok(id) => id,
        Err(error) => return invalid(&error),
    };
    match clients(caller.inputs, &caller.kubernetes, Output::Both).await {
        Ok((config, clients)) => {
            of_ours::explain(of_ours::Asked::Desk(&K::desk(&config, &clients)), &id, Output::Both).await
        }
        Err(outcome) => outcome,
    }
}

/// What `allclear pipeline history` and `allclear repo history` print.
async fn past<K: ShownKind>(caller: &Caller<'_>, name: &str, limit: Option<usize>) -> Outcome {
    let id = match named::<K>(name) {
        Ok(id) => id,
        Err(error) => return invalid(&error),
    };
    match clients(caller.inputs, &caller.kubernetes, Output::Both).await {
        Ok((config, clients)) => {
            let histories = KubernetesHistories::new(&clients);
            of_ours::history(&K::desk(&config, &clients), &histories, &id, limit, Output::Both).await
        }
        Err(outcome) => outcome,
    }
}

/// Whether the edge is purged for what a workload runs, by its record and a fresh read of the cluster: as `/api/v1/fresh`
/// says it. The ledger is not opened for that, because that would create one where there is none.
async fn fresh(sources: &Sources, question: &Question, until: Until) -> Outcome {
    let id = match question.workload(sources).await {
        Ok(id) => id,
        Err(why) => return invalid(&why),
    };
    let (ledgered, workload) = tokio::join!(peek(sources), sources.cluster.workload(&id));
    let ledgered = match ledgered {
        Section::Known(ledgered) => ledgered,
        Section::Missing { missing } => return refused(&missing),
    };
    if let Some(why) = ledgered.unreadable.get(&id) {
        return refused(&format!("the record of {} cannot be read: {why}", id.display_name()));
    }
    let workload = match workload {
        Ok(Some(workload)) => workload,
        Ok(None) => return refused(&not_found(sources, &id).await),
        Err(error) => return refused(&error),
    };
    let record = ledgered.records.get(&id).map(AsRef::as_ref);
    match judged(sources.cluster.as_ref(), &sources.policy, (record, Some(&workload)), until).await {
        Ok(fresh) => answer(&Said { name: id.display_name(), verdict: Verdict::of(fresh, until) }, Output::Both, 0),
        Err(error) => refused(&error),
    }
}

/// A verdict, and what it is about.
#[derive(serde::Serialize)]
#[serde(transparent)]
struct Said {
    #[serde(skip)]
    name: String,
    verdict: Verdict,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, verdict: Verdict { open, reason, retry_after, .. } } = self;
        write!(f, "{}: {}", visible(name), if *open { "open" } else { "not open" })?;
        reason.iter().try_for_each(|why| write!(f, ": {}", visible(why)))?;
        retry_after.iter().try_for_each(|seconds| write!(f, "; ask again in {seconds} s"))?;
        writeln!(f)
    }
}

/// An answer in both forms, as [`Output::Both`] writes it.
#[derive(Deserialize)]
struct Both {
    text: String,
    value: Value,
}

/// What an outcome comes to. One with an answer that is not whole is an answer, and says so.
fn read(Outcome { out, err, code }: Outcome) -> Answered {
    if out.is_empty() {
        return Answered::Failed(err);
    }
    let Both { mut text, value } = match serde_json::from_str(&out) {
        Ok(both) => both,
        Err(error) => return Answered::Failed(format!("error: failed to read the answer: {error}")),
    };
    text.push_str(&err);
    if code != 0 {
        text.push_str("\nIt was not found, or not all of it could be read.\n");
    }
    let longest = text.len().max(value.to_string().len());
    if longest > ANSWER_BYTES_MAX {
        let why = format!("error: the answer has {longest} bytes, and {ANSWER_BYTES_MAX} are sent at most");
        return Answered::Failed(format!("{why}; ask about one namespace, or about one object by its name"));
    }
    Answered::Found { text, value }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::answer::EXIT_FAILED;
    use ::objects::pipeline::judge::Stale;

    #[test]
    fn an_answer_is_the_text_and_the_json_of_the_command_and_says_when_it_is_not_whole() {
        let said = |fresh| Said { name: "shop/web".to_owned(), verdict: Verdict::of(fresh, Until::Fresh) };
        let open = answer(&said(Ok(())), Output::Both, 0);
        let expected =
            Answered::Found { text: "shop/web: open\n".to_owned(), value: json!({ "open": true, "until": "fresh" }) };
        assert_eq!(read(open), expected);
        let closed = answer(&said(Err(Stale("its purge\u{202e}".to_owned()))), Output::Both, EXIT_FAILED);
        let expected = Answered::Found {
            text: "shop/web: not open: its purge\\u{202e}; ask again in 2 s\n\n\
                   It was not found, or not all of it could be read.\n"
                .to_owned(),
            value: json!({ "open": false, "until": "fresh", "reason": "its purge\u{202e}", "retryAfter": 2 }),
        };
        assert_eq!(read(closed), expected);
        assert_eq!(read(refused("no cluster")), Answered::Failed("error: no cluster\n".to_owned()));
    }

    #[test]
    fn an_answer_that_is_too_long_for_a_model_says_how_to_ask_for_less() {
        let of = |bytes: usize| read(answer(&"a".repeat(bytes), Output::Both, 0));
        // As JSON it has two quotes more.
        assert!(matches!(of(ANSWER_BYTES_MAX - 2), Answered::Found { .. }));
        let Answered::Failed(why) = of(ANSWER_BYTES_MAX - 1) else { panic!("it is one byte too long") };
        assert!(why.contains("262145 bytes") && why.contains("one namespace"), "{why}");
    }
}
