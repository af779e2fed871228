//! The answer of `explain`, for the page of a workload: asked of whoever can (`cli::explain`), seldom, and kept for a moment.
//!
//! An answer costs calls to the API server and to AWS, and who reaches the page may ask for one. So one is made at a time, and no more
//! than one every few seconds for the whole process. Not for what is in it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::reply;
use domain::kernel::id::WorkloadId;
use domain::kernel::text;

/// How long an answer serves all requests for the same.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// Between two answers. Each is about ten calls.
const ASKED_EVERY: Duration = Duration::from_secs(1);

/// How long a page waits for it. The rest of the page does not depend on it.
const ANSWER_WITHIN: Duration = Duration::from_secs(8);

/// Bytes of an answer that are shown: some 500 lines. The longest are lists of hosts.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

#[async_trait::async_trait]
pub trait Explains: Send + Sync {
    /// What `allclear explain` prints about this workload.
    async fn explain(&self, id: &WorkloadId) -> String;
}

/// Asks one that explains, with measure.
pub struct Explaining {
    explains: Option<Arc<dyn Explains>>,
    last: Mutex<Option<Answer>>,
}

struct Answer {
    about: WorkloadId,
    text: String,
    at: Instant,
}

impl Explaining {
    pub(super) fn new(explains: Option<Arc<dyn Explains>>) -> Self {
        Self { explains, last: Mutex::default() }
    }

    /// The answer, or why there is none now.
    pub(super) async fn about(&self, id: &WorkloadId) -> Result<String, String> {
        let Some(explains) = &self.explains else {
            return Err("This process does not answer explain; the command does.".to_owned());
        };
        let asked = async {
            let mut last = self.last.lock().await;
            if let Some(answer) = last.as_ref().filter(|answer| answer.about == *id && answer.at.elapsed() < KEPT_FOR) {
                return answer.text.clone();
            }
            if let Some(answer) = last.as_ref() {
                tokio::time::sleep_until(answer.at + ASKED_EVERY).await;
            }
            let text = text::cut(&explains.explain(id).await, ANSWER_BYTES_MAX);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Counting(AtomicUsize);

    #[async_trait::async_trait]
    impl Explains for Counting {
        async fn explain(&self, id: &WorkloadId) -> String {
            let number = self.0.fetch_add(1, Ordering::SeqCst);
            if id.name == "slow" {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            format!("{} {number}", id.name)
        }
    }

    fn of(name: &str) -> WorkloadId {
        WorkloadId::deployment("shop", name)
    }

    #[tokio::test(start_paused = true)]
    async fn many_who_ask_cost_one_answer_a_second_at_most() {
        let counting = Arc::new(Counting::default());
        let explaining = Explaining::new(Some(counting.clone()));
        let began = Instant::now();
        for _ in 0..50 {
            assert_eq!(explaining.about(&of("web")).await.unwrap(), "web 0");
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for number in 1..=5 {
            assert_eq!(explaining.about(&of(&format!("w{number}"))).await.unwrap(), format!("w{number} {number}"));
        }
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(explaining.about(&of("w5")).await.unwrap(), "w5 6", "an old answer is not shown as a new one");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_answer_blocks_nothing_for_long() {
        let explaining = Explaining::new(Some(Arc::new(Counting::default())));
        assert!(explaining.about(&of("slow")).await.unwrap_err().contains("within 8 s"));
        assert_eq!(explaining.about(&of("web")).await.unwrap(), "web 1");
        assert!(Explaining::new(None).about(&of("web")).await.is_err());
    }
}
