//! `POST /hooks/poke/pipeline/NAMESPACE/NAME`: a forge or another program says that something happened. We look.

use actix_web::http::StatusCode;

use super::refusals::Told;
use super::signature::any;
use super::{Porter, Sent, unknown};
use domain::id::PipelineId;
use domain::pipeline::callers::Mark;

impl Porter {
    pub(super) async fn poke(&self, sent: &Sent<'_>, id: &PipelineId) -> Result<Told, Told> {
        let trust = &self.hooks.trust;
        if trust.keys.is_empty() && !trust.allow_unsigned {
            return Err(unknown("hooks.key_file has no keys", "write a key into it, and give the sender the same"));
        }
        if !trust.keys.is_empty() {
            any(sent.headers, &sent.body, &trust.keys, self.wall_s())
                .map_err(|wrong| unknown(&format!("{wrong}; our keys are in hooks.key_file"), wrong.remedy()))?;
        }
        let called = self.called(id).await?;
        self.mark(&called, &Mark::Look(self.hooks.clock.wall_ms())).await?;
        tracing::debug!(pipeline = %id, "a poke made us look");
        Ok(Told::done(StatusCode::ACCEPTED, ""))
    }
}
