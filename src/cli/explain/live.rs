//! The answer of `explain` on the page of a workload: the very same text, from the outside of the running process.

use std::sync::Arc;

use crate::app::Views;
use crate::cli::answer::{Outcome, Output};
use crate::cli::explain::explain;
use crate::cli::read::whose::Whose;
use crate::cli::read::{Question, Sources, asking};
use crate::config::Config;
use crate::http::Explains;
use domain::kernel::id::WorkloadId;

/// What answers through these views.
pub fn explains(views: Views, config: &Config) -> Arc<dyn Explains> {
    let (sources, question) = asking(views, config, Whose::Itself, (None, None));
    Arc::new(Live { sources, question })
}

struct Live {
    sources: Sources,
    question: Question,
}

#[async_trait::async_trait]
impl Explains for Live {
    async fn explain(&self, id: &WorkloadId) -> String {
        let question = Question { name: Some(id.display_name()), ..self.question.clone() };
        let Outcome { out, err, .. } = explain(&self.sources, &question, Output::Table).await;
        out + &err
    }
}
