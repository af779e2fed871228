//! The answer of `explain`, for the page of a workload: the very same text, asked for seldom, and kept for a moment.
//!
//! An answer costs calls to the API server and to AWS, and who reaches the page may ask for one. So one is made at a time, and no more
//! than one every few seconds for the whole process. Not for what is in it; that is `looking::explain`.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::reply;
use crate::looking::Sources;
use crate::looking::explain::{Found, explanation};
use crate::looking::workloads::not_found;
use kernel::id::WorkloadId;
use kernel::text;

/// How long an answer serves all requests for the same.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// Between two answers. Each is about ten calls.
const ASKED_EVERY: Duration = Duration::from_secs(1);

/// How long a page waits for it. The rest of the page does not depend on it.
const ANSWER_WITHIN: Duration = Duration::from_secs(8);

/// Bytes of an answer that are shown: some 500 lines. The longest are lists of hosts.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

#[derive(Default)]
pub struct Explaining {
    last: Mutex<Option<Answer>>,
}

struct Answer {
    about: WorkloadId,
    text: String,
    at: Instant,
}

impl Explaining {
    /// What is kept of this workload, or else what asking comes to; or why there is no answer now.
    pub(super) async fn about(&self, id: &WorkloadId, ask: impl Future<Output = String>) -> Result<String, String> {
        let asked = async {
            let mut last = self.last.lock().await;
            if let Some(answer) = last.as_ref().filter(|answer| answer.about == *id && answer.at.elapsed() < KEPT_FOR) {
                return answer.text.clone();
            }
            if let Some(answer) = last.as_ref() {
                tokio::time::sleep_until(answer.at + ASKED_EVERY).await;
            }
            let text = text::cut(&ask.await, ANSWER_BYTES_MAX);
            *last = Some(Answer { about: id.clone(), text: text.clone(), at: Instant::now() });
            text
        };
        reply::within(ANSWER_WITHIN, asked).await.ok_or_else(|| {
            format!(
                "There was no answer within {} s; reload to ask again, or use the command.",
                ANSWER_WITHIN.as_secs()
            )
        })
    }
}

/// What `allclear explain` prints about this workload.
pub(super) async fn explained(sources: &Sources, id: &WorkloadId) -> String {
    match Box::pin(explanation(sources, id)).await {
        Found::Yes(explanation) | Found::Unknown(explanation) => explanation.to_string(),
        Found::No => format!("error: {}\n", text::visible(&Box::pin(not_found(sources, id)).await)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn of(name: &str) -> WorkloadId {
        WorkloadId::deployment("shop", name)
    }

    #[tokio::test(start_paused = true)]
    async fn many_who_ask_cost_one_answer_a_second_at_most() {
        let (explaining, asked) = (Explaining::default(), AtomicUsize::default());
        let about = async |name: &str| {
            let ask = async { format!("{name} {}", asked.fetch_add(1, Ordering::SeqCst)) };
            explaining.about(&of(name), ask).await.unwrap()
        };
        let began = Instant::now();
        for _ in 0..50 {
            assert_eq!(about("web").await, "web 0");
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for number in 1..=5 {
            assert_eq!(about(&format!("w{number}")).await, format!("w{number} {number}"));
        }
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(about("w5").await, "w5 6", "an old answer is not shown as a new one");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_answer_blocks_nothing_for_long() {
        let explaining = Explaining::default();
        let late = explaining.about(&of("slow"), std::future::pending()).await;
        assert!(late.unwrap_err().contains("within 8 s"));
        assert_eq!(explaining.about(&of("web"), async { "web".to_owned() }).await.unwrap(), "web");
    }
}
