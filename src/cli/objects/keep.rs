//! A person's no to a destroy: the Repo goes, and what it applied stays.

use super::error::Error;
use super::kind::{missing, one};
use crate::adapters::kubernetes::desk::{Desk, KEEP, Marked};
use crate::adapters::kubernetes::objects::RepoKind;
use crate::cli::answer::{Outcome, done, refused};
use crate::cli::consent::Consent;
use kernel::id::{ObjectId, RepoId};

/// Lets a Repo that is being deleted go with nothing destroyed. Exit codes: 0 said, or left; 1 not done.
pub async fn keep(desk: &Desk<RepoKind>, id: &RepoId, consent: Consent) -> Outcome {
    match said(desk, id, consent).await {
        Ok(outcome) => outcome,
        Err(error) => refused(&error),
    }
}

async fn said(desk: &Desk<RepoKind>, id: &RepoId, consent: Consent) -> Result<Outcome, Error> {
    let (found, name) = (one(desk, id).await?, id.display_name());
    if !found.object.is_leaving() {
        return Err(Error::NotLeaving(name));
    }
    let plan = format!(
        "{name} is being deleted\nAfter a no it goes, and nothing of what it applied is destroyed. What runs ends first.\n"
    );
    if let Err(left) = consent.ask(&plan) {
        return Ok(left);
    }
    // The answer is to the deletion of this very object.
    let uid = found.object.uid.clone();
    match desk.mark(&found, &[(KEEP, Some(uid.as_str()))], false).await? {
        Marked::Done(_) => Ok(done(format!("{name} goes, and nothing is destroyed\n"))),
        Marked::Gone => Err(missing::<RepoKind>(id)),
        Marked::Changed => Err(Error::MadeAnew(name)),
    }
}
