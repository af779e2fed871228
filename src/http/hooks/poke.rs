//! `POST /hooks/poke/pipeline/NAMESPACE/NAME` and `/hooks/poke/repo/NAMESPACE/NAME`: a git host, a forge or another program says that
//! something happened. We look.

use actix_web::http::StatusCode;

use super::refusals::Told;
use super::signature::any;
use super::{Porter, Sent, broken, no_object, unknown};
use kernel::id::{ObjectId, PipelineId, RepoId};
use objects::pipeline::callers::Mark;

impl Porter {
    pub(super) async fn poke(&self, sent: &Sent<'_>, id: &PipelineId) -> Result<Told, Told> {
        self.trust(sent)?;
        let called = self.called(id).await?;
        self.mark(&called, &Mark::Look(self.hooks.clock.wall_ms())).await?;
        tracing::debug!(pipeline = %id, "a poke made us look");
        Ok(Told::done(StatusCode::ACCEPTED, ""))
    }

    pub(super) async fn poke_repo(&self, sent: &Sent<'_>, id: &RepoId) -> Result<Told, Told> {
        self.trust(sent)?;
        self.attends(&id.namespace, &id.display_name())?;
        let poked = self.outside(self.hooks.repos.poke(id, self.hooks.clock.wall_ms())).await;
        if !poked.map_err(|error| broken(&error))? {
            return Err(no_object(&format!("there is no Repo {}", id.display_name())));
        }
        tracing::debug!(repo = %id, "a poke made us look");
        Ok(Told::done(StatusCode::ACCEPTED, ""))
    }

    /// Whether the sender may poke: it has one of our keys, or needs none.
    fn trust(&self, sent: &Sent<'_>) -> Result<(), Told> {
        let trust = &self.hooks.trust;
        if trust.keys.is_empty() && !trust.allow_unsigned {
            return Err(unknown("hooks.key_file has no keys", "write a key into it, and give the sender the same"));
        }
        if !trust.keys.is_empty() {
            any(sent.headers, &sent.body, &trust.keys, self.wall_s())
                .map_err(|wrong| unknown(&format!("{wrong}; our keys are in hooks.key_file"), wrong.remedy()))?;
        }
        Ok(())
    }
}
