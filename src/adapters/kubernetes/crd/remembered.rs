//! The status of a Pipeline, between the object and the domain, both ways. What was read and written again is the same.
//!
//! Not for deciding what is in it.

use domain::apps::app::{LeafId, LeafKind};
use domain::kernel::id::{Environment, PromotionSeq, Revision};
use domain::notices::notice::Notice;
use domain::objects::asked::Topic;
use domain::pipeline::proposal::{ForgeKind, Repository};
use domain::pipeline::spec::Object;
use domain::pipeline::status::{
    Approval, Behind, Condition, ConditionKind, Ended, EnvironmentStatus, OpenRequest, Phase, Promotion, Question,
    Status, TargetStatus, Waiting,
};
use domain::pipeline::trail::Trail;
use serde_json::Value;

use super::raw_spec::{ClusterKind, ClusterRef};
use super::raw_status as raw;
use super::values::{at, count, ms, number};

/// Reads the status of an object; without one it is that of a Pipeline that was never judged. `namespace` is the
/// Pipeline's.
///
/// # Errors
/// When something in it is not what we write, in words.
pub fn read(json: Option<&str>, namespace: &str) -> Result<Status, String> {
    let Some(json) = json.filter(|json| *json != "null") else {
        return Ok(Status { observed_generation: -1, ..Status::default() });
    };
    let raw: raw::PipelineStatus = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let environments = raw.environments.into_iter().map(|(name, one)| {
        let read = environment(one, namespace).map_err(|why| format!("environment {name}: {why}"))?;
        Ok::<_, String>((Environment(name), read))
    });
    let conditions = raw.conditions.into_iter().filter_map(|one| condition(one).transpose());
    let notice = |one: Value| serde_json::from_value::<Notice>(one).map_err(|error| format!("untold: {error}"));
    Ok(Status {
        serial: count(raw.serial, "serial")?,
        observed_generation: raw.observed_generation,
        latest: revision(raw.latest_revision),
        environments: environments.collect::<Result<_, _>>()?,
        untold: raw.untold.into_iter().map(notice).collect::<Result<_, _>>()?,
        history: raw.history.into_iter().map(ended).collect::<Result<_, _>>()?,
        conditions: conditions.collect::<Result<_, _>>()?,
    })
}

/// The status of an object as it stands in it.
pub fn written(object: &Object) -> raw::PipelineStatus {
    let Status { serial, observed_generation, latest, environments, untold, history, conditions } = &object.status;
    let targets = object.spec.iter().flat_map(|spec| &spec.environments).flat_map(|one| &one.targets);
    let app = targets.map(|target| (&target.app, &target.name)).next();
    // Upstream's CRD wants an app in each target, also where the spec has none that could be read.
    let app = app.map_or_else(raw::ClusterAppRef::default, |(app, name)| raw::ClusterAppRef {
        api_version: app.api_version.clone(),
        kind: app.kind.clone(),
        name: name.clone(),
        cluster_ref: None,
    });
    let environment = |(name, one): (&Environment, &EnvironmentStatus)| {
        (name.0.clone(), write_environment(one, &app, &object.id.namespace))
    };
    let condition = |one: &Condition| raw::Condition {
        kind: one.kind.name().to_owned(),
        status: if one.holds { "True" } else { "False" }.to_owned(),
        reason: one.reason.clone(),
        message: one.message.clone(),
        last_transition_time: at(one.since_ms),
        observed_generation: Some(*observed_generation),
    };
    let ended = |one: &Ended| raw::Ended {
        environment: one.environment.0.clone(),
        seq: number(one.seq.0),
        revision: one.revision.0.clone(),
        outcome: one.outcome.name().to_owned(),
        by: one.by.clone(),
        at: at(one.at_ms),
    };
    raw::PipelineStatus {
        observed_generation: *observed_generation,
        conditions: conditions.iter().map(condition).collect(),
        serial: number(*serial),
        latest_revision: latest.as_ref().map(text),
        environments: environments.iter().map(environment).collect(),
        history: history.iter().map(ended).collect(),
        // A notice is plain data: it has no form that JSON has not.
        untold: untold.iter().filter_map(|notice| serde_json::to_value(notice).ok()).collect(),
    }
}

fn environment(raw: raw::EnvironmentStatus, namespace: &str) -> Result<EnvironmentStatus, String> {
    // Upstream writes an empty one where nothing waits.
    let waits = raw.waiting_approval.filter(|waiting| !waiting.revision.is_empty() && !waiting.ticket.is_empty());
    let target = |one: raw::TargetStatus| TargetStatus {
        cluster: one.cluster_app_ref.cluster_ref.map(|cluster| leaf(cluster, namespace)),
        uid: one.uid,
        ready: one.ready,
        revision: revision(Some(one.revision)),
        error: Some(one.error).filter(|error| !error.is_empty()),
        message: Some(one.message).filter(|message| !message.is_empty()),
    };
    let behind = |one: raw::Behind| Ok::<_, String>(Behind { since_ms: ms(&one.since)?, told: one.told });
    Ok(EnvironmentStatus {
        targets: raw.targets.into_iter().map(target).collect(),
        waiting: waits.map(waiting).transpose()?,
        promotion: raw.promotion.map(promotion).transpose()?,
        seq: PromotionSeq(count(raw.seq, "seq")?),
        reached: revision(raw.reached),
        request: raw.pull_request.map(|one| request(one).map(|(request, _)| request)).transpose()?,
        closing: raw.closing.into_iter().map(request).collect::<Result<_, _>>()?,
        behind: raw.behind.map(behind).transpose()?,
        trail: raw.trail.map(trail).transpose()?,
    })
}

fn write_environment(status: &EnvironmentStatus, app: &raw::ClusterAppRef, namespace: &str) -> raw::EnvironmentStatus {
    let EnvironmentStatus { targets, waiting, promotion, seq, reached, request, closing, behind, trail } = status;
    let target = |one: &TargetStatus| raw::TargetStatus {
        cluster_app_ref: raw::ClusterAppRef {
            cluster_ref: one.cluster.as_ref().map(|cluster| write_leaf(cluster, namespace)),
            ..app.clone()
        },
        uid: one.uid.clone(),
        ready: one.ready,
        revision: one.revision.as_ref().map(text).unwrap_or_default(),
        error: one.error.clone().unwrap_or_default(),
        message: one.message.clone().unwrap_or_default(),
    };
    raw::EnvironmentStatus {
        targets: targets.iter().map(target).collect(),
        waiting_approval: waiting.as_ref().map(|one| raw::Waiting {
            revision: text(&one.revision),
            ticket: one.ticket.clone(),
            question: one.question.name().to_owned(),
            since: at(one.since_ms),
        }),
        promotion: promotion.as_ref().map(write_promotion),
        seq: number(seq.0),
        reached: reached.as_ref().map(text),
        pull_request: request.as_ref().map(|request| write_request(request, "")),
        closing: closing.iter().map(|(request, why)| write_request(request, why)).collect(),
        behind: behind.as_ref().map(|one| raw::Behind { since: at(one.since_ms), told: one.told }),
        trail: trail.as_ref().map(write_trail),
    }
}

/// A request, and why it is closed.
fn request(raw: raw::RequestStatus) -> Result<(OpenRequest, String), String> {
    let repository = |one: raw::RepositoryStatus| {
        let forge = ForgeKind::ALL.into_iter().find(|kind| kind.name() == one.forge);
        Ok::<_, String>(Repository {
            forge: forge.ok_or_else(|| format!("pullRequest.repository.type: {:?} is no forge", one.forge))?,
            url: one.url,
            base: one.base_branch,
            path: one.path,
            secret: one.secret,
        })
    };
    let request = OpenRequest {
        seq: PromotionSeq(count(raw.seq, "pullRequest.seq")?),
        number: raw.number.map(|number| count(number, "pullRequest.number")).transpose()?,
        url: raw.url,
        commit: raw.commit,
        repository: raw.repository.map(repository).transpose()?,
    };
    Ok((request, raw.reason))
}

fn write_request(request: &OpenRequest, why: &str) -> raw::RequestStatus {
    let OpenRequest { seq, number: known, url, commit, repository } = request;
    raw::RequestStatus {
        seq: number(seq.0),
        number: known.map(number),
        url: url.clone(),
        commit: commit.clone(),
        repository: repository.as_ref().map(|one| raw::RepositoryStatus {
            forge: one.forge.name().to_owned(),
            url: one.url.clone(),
            base_branch: one.base.clone(),
            path: one.path.clone(),
            secret: one.secret.clone(),
        }),
        reason: why.to_owned(),
    }
}

fn trail(raw: raw::Trail) -> Result<Trail, String> {
    Ok(Trail {
        of: Topic::named(&raw.of).ok_or_else(|| format!("trail.of: {:?} is not what we write", raw.of))?,
        revisions: raw.revisions.into_iter().map(Revision).collect(),
        since_ms: raw.since.as_deref().map(ms).transpose()?,
        unready_since_ms: raw.unready_since.as_deref().map(ms).transpose()?,
        agreed: raw.agreed,
        passed: revision(raw.passed),
    })
}

fn write_trail(trail: &Trail) -> raw::Trail {
    let Trail { of, revisions, since_ms, unready_since_ms, agreed, passed } = trail;
    raw::Trail {
        of: of.to_string(),
        revisions: revisions.iter().map(text).collect(),
        since: since_ms.map(at),
        unready_since: unready_since_ms.map(at),
        agreed: *agreed,
        passed: passed.as_ref().map(text),
    }
}

fn waiting(raw: raw::Waiting) -> Result<Waiting, String> {
    let question = Question::ALL.into_iter().find(|one| one.name() == raw.question);
    Ok(Waiting {
        revision: Revision(raw.revision),
        ticket: raw.ticket,
        question: question.ok_or_else(|| format!("waitingApproval.for: {:?} is no question", raw.question))?,
        since_ms: ms(&raw.since)?,
    })
}

fn promotion(raw: raw::PromotionStatus) -> Result<Promotion, String> {
    let approval = |one: raw::Approval| {
        Ok::<_, String>(Approval { by: one.by, ticket: one.ticket, at_ms: ms(&one.at)?, overrides: one.overrides })
    };
    Ok(Promotion {
        seq: PromotionSeq(count(raw.seq, "promotion.seq")?),
        revision: Revision(raw.revision),
        from: revision(raw.from),
        phase: phase(&raw.phase)?,
        started_ms: raw.started_at.as_deref().map(ms).transpose()?,
        approval: raw.approval.map(approval).transpose()?,
        message: raw.message,
    })
}

fn write_promotion(promotion: &Promotion) -> raw::PromotionStatus {
    let Promotion { seq, revision, from, phase, started_ms, approval, message } = promotion;
    raw::PromotionStatus {
        seq: number(seq.0),
        revision: text(revision),
        from: from.as_ref().map(text),
        phase: phase.name().to_owned(),
        started_at: started_ms.map(at),
        message: message.clone(),
        approval: approval.as_ref().map(|one| raw::Approval {
            by: one.by.clone(),
            ticket: one.ticket.clone(),
            at: at(one.at_ms),
            overrides: one.overrides,
        }),
    }
}

fn ended(raw: raw::Ended) -> Result<Ended, String> {
    Ok(Ended {
        environment: Environment(raw.environment),
        seq: PromotionSeq(count(raw.seq, "history.seq")?),
        revision: Revision(raw.revision),
        outcome: phase(&raw.outcome)?,
        by: raw.by,
        at_ms: ms(&raw.at)?,
    })
}

/// A condition of ours; others' are theirs to write.
fn condition(raw: raw::Condition) -> Result<Option<Condition>, String> {
    let Some(kind) = ConditionKind::ALL.into_iter().find(|kind| kind.name() == raw.kind) else { return Ok(None) };
    Ok(Some(Condition {
        kind,
        holds: raw.status == "True",
        reason: raw.reason,
        message: raw.message,
        since_ms: ms(&raw.last_transition_time)?,
    }))
}

fn leaf(raw: ClusterRef, namespace: &str) -> LeafId {
    let kind = match raw.kind {
        ClusterKind::Secret => LeafKind::Secret,
        ClusterKind::GitopsCluster => LeafKind::GitopsCluster,
    };
    LeafId { kind, namespace: raw.namespace.unwrap_or_else(|| namespace.to_owned()), name: raw.name }
}

/// As a spec would write it: the Pipeline's own namespace is left out.
fn write_leaf(leaf: &LeafId, namespace: &str) -> ClusterRef {
    let kind = match leaf.kind {
        LeafKind::Secret => ClusterKind::Secret,
        LeafKind::GitopsCluster => ClusterKind::GitopsCluster,
    };
    let elsewhere = (leaf.namespace != namespace).then(|| leaf.namespace.clone());
    ClusterRef { api_version: None, kind, name: leaf.name.clone(), namespace: elsewhere }
}

fn phase(name: &str) -> Result<Phase, String> {
    Phase::ALL
        .into_iter()
        .find(|phase| phase.name() == name)
        .ok_or_else(|| format!("{name:?} is no phase of a promotion"))
}

fn revision(text: Option<String>) -> Option<Revision> {
    text.filter(|text| !text.is_empty()).map(Revision)
}

fn text(revision: &Revision) -> String {
    revision.0.clone()
}

#[cfg(test)]
mod tests;
