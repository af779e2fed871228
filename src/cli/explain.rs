//! `allclear explain [-n NAMESPACE] [NAME]`: why a workload was purged, or was not, and what happens next; what is behind a host; without
//! a name, all workloads in a table.
//!
//! Not for how that is found out; that is `looking::explain`, `looking::host` and `looking::workloads`.

#[cfg(test)]
mod tests;

use std::fmt;

use comfy_table::{ContentArrangement, Table, presets};

use crate::cli::answer::{EXIT_FAILED, EXIT_INVALID, Outcome, Output, answer, refused};
use crate::looking::explain::{Found, explanation};
use crate::looking::host::host;
use crate::looking::layout::{Tone, line, toned};
use crate::looking::workloads::{Listing, Row, listing, not_found};
use crate::looking::{Question, Sources};
use kernel::id::Kind;
use kernel::names::host::Host;
use kernel::text::visible;

/// Answers. Exit codes: 0 found, 1 not found or unreadable, 2 not a name. A name with a dot is a host
/// where no workload has it.
pub async fn explain(sources: &Sources, question: &Question, output: Output) -> Outcome {
    if question.name.is_none() {
        let (listing, complete) = listing(sources, question.namespace.as_deref()).await;
        return answer(&listing, output, if complete { 0 } else { EXIT_FAILED });
    }
    let id = match (question.workload(sources).await, question.host()) {
        (Ok(id), _) => id,
        (Err(_), Some(host)) => return about_host(sources, &host, output).await,
        (Err(why), None) => return Outcome { code: EXIT_INVALID, ..refused(&why) },
    };
    match (explanation(sources, &id).await, question.host()) {
        (Found::Yes(explanation), _) => answer(&*explanation, output, 0),
        (Found::Unknown(explanation), _) => answer(&*explanation, output, EXIT_FAILED),
        (Found::No, Some(host)) => about_host(sources, &host, output).await,
        (Found::No, None) => refused(&not_found(sources, &id).await),
    }
}

/// Answers about a host. Exit codes: 0 found, 1 not found or not all could be read.
pub async fn about_host(sources: &Sources, asked: &Host, output: Output) -> Outcome {
    let seen = host(sources, asked).await;
    let found = !seen.workloads.is_empty() && seen.missing.is_empty() && seen.distributions.known().is_some();
    answer(&seen, output, if found { 0 } else { EXIT_FAILED })
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.workloads.is_empty() {
            let mut table = Table::new();
            table.load_style(presets::NOTHING);
            if let Some(columns) = f.width() {
                let columns = u16::try_from(columns).unwrap_or(u16::MAX);
                table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
            }
            table.set_header(["NAMESPACE", "NAME", "VERSION", "PHASE", "STATE", "LAST PURGE"]);
            for Row { workload, version, phase, state, last_purge } in &self.workloads {
                let last_purge = last_purge.as_deref().unwrap_or("–");
                let name = match workload.kind {
                    Kind::Deployment => workload.name.clone(),
                    other => format!("{other}/{}", workload.name),
                };
                let row = [&workload.namespace, &name, version, *phase, state, last_purge];
                table.add_row(row.map(visible));
            }
            for (at, line) in table.to_string().lines().enumerate() {
                // Every cell begins with a blank; the first one's is not needed.
                let line = line.strip_prefix(' ').unwrap_or(line).trim_end();
                let tone = if at == 0 { Tone::Title } else { Tone::Plain };
                let line = toned(f, tone, line).into_owned();
                writeln!(f, "{line}")?;
            }
        } else if self.missing.is_empty() {
            writeln!(f, "there are no workloads here")?;
        }
        if let Some(place) = &self.unrecorded_in {
            line(
                f,
                Tone::Look,
                &format!("not recorded: in the ledger in {place}; --ledger-namespace looks into another"),
            )?;
        }
        if let Some(trouble) = &self.controller {
            line(f, Tone::Look, &format!("controller: {trouble}"))?;
        }
        for why in &self.missing {
            line(f, Tone::Look, &format!("missing: {why}"))?;
        }
        Ok(())
    }
}
