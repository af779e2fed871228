//! What the actors of Pipelines tell each other.

use std::collections::BTreeSet;

use actix::{Message, Recipient};

use kernel::id::PipelineId;
use objects::apps::app::TargetKey;
use objects::apps::leaf::Sights;
use objects::pipeline::freezes::Freezes;

/// A Pipeline that looks at targets.
#[derive(Clone)]
pub struct Owner {
    pub id: PipelineId,
    /// Where it learns what its targets say.
    pub reported: Recipient<Reported>,
    /// Where it learns of the freezes of the cluster.
    pub frozen: Recipient<Frozen>,
    /// Where fresh reads are answered.
    pub looked: Recipient<Looked>,
}

/// Pipeline → clusters → leaf: report these from now on, and no others; with none, forget the Pipeline.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Follow {
    pub owner: Owner,
    /// What it wants to know about.
    pub targets: BTreeSet<TargetKey>,
}

/// Pipeline → clusters → leaf: read these afresh. Each is answered once, by one [`Looked`] or another, unless the actor that reads
/// it crashes.
#[derive(Message)]
#[rtype(result = "()")]
pub struct LookAt {
    pub owner: PipelineId,
    pub ticket: u64,
    pub targets: BTreeSet<TargetKey>,
}

/// Leaf → Pipeline: what its targets say.
#[derive(Message, Clone)]
#[rtype(result = "()")]
pub struct Reported(pub Sights);

/// Clusters → Pipeline: what is known of the freezes of the cluster.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Frozen(pub Freezes);

/// Leaf → Pipeline: what a fresh read says.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Looked(pub u64, pub Sights);

/// Where a Pipeline has clusters read.
#[derive(Clone)]
pub struct Readers {
    pub follow: Recipient<Follow>,
    pub look_at: Recipient<LookAt>,
}
