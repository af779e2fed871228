//! A notice as a message for people in a chat: Slack, and Microsoft Teams.
//!
//! Both are shown as they are written: nothing that a tenant chose becomes a mention, a link with another text, or an order of letters that
//! is none. Slack: <https://docs.slack.dev/messaging/formatting-message-text/> and the limits of
//! <https://docs.slack.dev/reference/block-kit/>. Teams: an Adaptive Card as the webhooks of Workflows take it; its
//! connectors of Office 365 are retired (<https://learn.microsoft.com/connectors/teams/>, 28 KB for a message).

use serde_json::{Value, json};

use kernel::text::{first, visible};
use notices::notice::{About, Notice, Severity};

/// Longest text of a section in Slack, in characters.
const SLACK_CHARS_MAX: usize = 3_000;

/// What a message is cut to in Teams, and what a fact is in both: with four bytes for each character a card stays within 28 KB.
const TEAMS_CHARS_MAX: usize = 4_000;
const FACT_CHARS_MAX: usize = 500;

/// What is said in either chat.
struct Said {
    title: String,
    severity: Severity,
    message: String,
    /// Facts with their names.
    facts: Vec<(&'static str, String)>,
}

fn said(notice: &Notice) -> Said {
    let mut facts = Vec::new();
    let mut fact = |name, value: Option<&str>| {
        let value = value.filter(|value| !value.is_empty());
        facts.extend(value.map(|value| (name, first(&visible(value), FACT_CHARS_MAX).to_owned())));
    };
    fact("change", Some(&notice.change));
    match &notice.about {
        About::Workload(_, mentions) => {
            let hosts: Vec<String> = mentions.hosts.iter().map(ToString::to_string).collect();
            fact("hosts", Some(&hosts.join(", ")));
        }
        About::Pipeline(_, promotion) => {
            let promotion = promotion.as_ref();
            fact("environment", promotion.map(|fact| fact.environment.0.as_str()));
            fact("ticket", promotion.and_then(|fact| fact.ticket.as_deref()));
            fact("pull request", promotion.and_then(|fact| fact.request.as_deref()));
        }
        About::Repo(_, run) => {
            let run = run.as_ref();
            fact("plan", run.and_then(|fact| fact.plan.as_deref()));
            fact("ticket", run.and_then(|fact| fact.ticket.as_deref()));
            fact("job", run.and_then(|fact| fact.job.as_deref()));
        }
    }
    Said {
        title: format!("{}: {}", notice.kind.reason(), notice.about.subject().display_name()),
        severity: notice.kind.severity(),
        message: visible(&notice.message).into_owned(),
        facts,
    }
}

fn test_of(message: &str) -> Said {
    let (title, message) = ("WebhookTest".to_owned(), message.to_owned());
    Said { title, severity: Severity::Info, message, facts: Vec::new() }
}

/// The body for Slack. The same notice gives the same bytes.
pub fn slack(notice: &Notice) -> String {
    slack_of(&said(notice))
}

/// A message that tells of a test.
pub fn slack_test(message: &str) -> String {
    slack_of(&test_of(message))
}

/// The body for Teams. The same notice gives the same bytes.
pub fn teams(notice: &Notice) -> String {
    teams_of(&said(notice))
}

/// A card that tells of a test.
pub fn teams_test(message: &str) -> String {
    teams_of(&test_of(message))
}

fn slack_of(Said { title, severity, message, facts }: &Said) -> String {
    let mark = match severity {
        Severity::Info => "",
        Severity::Warn => ":warning: ",
        Severity::Error => ":rotating_light: ",
    };
    let title = escaped(title, FACT_CHARS_MAX);
    let message = escaped(message, SLACK_CHARS_MAX);
    // What others wrote: no order of characters in it is bold, an emoji, a channel or a link.
    let plain = |text: &str| json!({"type": "plain_text", "text": text, "emoji": false});
    let head = json!({"type": "mrkdwn", "text": format!("{mark}*{title}*"), "verbatim": true});
    let mut blocks = vec![json!({"type": "section", "text": head})];
    if !message.is_empty() {
        blocks.push(json!({"type": "section", "text": plain(&message)}));
    }
    let element = |(name, value): &(&str, String)| plain(&format!("{name}: {}", escaped(value, FACT_CHARS_MAX)));
    let elements: Vec<Value> = facts.iter().map(element).collect();
    if !elements.is_empty() {
        blocks.push(json!({"type": "context", "elements": elements}));
    }
    // What is shown where blocks are not, as in a notification.
    json!({"text": format!("{mark}{title}: {message}"), "blocks": blocks}).to_string()
}

/// A text without the three characters that are Slack's own, of so many characters as it is sent.
fn escaped(text: &str, chars_max: usize) -> String {
    let mut escaped = String::new();
    let mut left = chars_max.saturating_sub(1);
    let mut buffer = [0_u8; 4];
    for character in text.chars() {
        let written = match character {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            other => other.encode_utf8(&mut buffer),
        };
        let Some(rest) = left.checked_sub(written.chars().count()) else {
            escaped.push('…');
            break;
        };
        left = rest;
        escaped.push_str(written);
    }
    escaped
}

fn teams_of(Said { title, severity, message, facts }: &Said) -> String {
    let color = match severity {
        Severity::Info => "default",
        Severity::Warn => "warning",
        Severity::Error => "attention",
    };
    // Runs of text, because a TextBlock would read Markdown in it.
    let line = |runs: Value| json!({"type": "RichTextBlock", "inlines": runs});
    let mut lines = vec![
        line(json!([{"type": "TextRun", "text": title, "weight": "bolder", "size": "medium", "color": color}])),
        line(json!([{"type": "TextRun", "text": first(message, TEAMS_CHARS_MAX)}])),
    ];
    lines.extend(facts.iter().map(|(name, value)| {
        let name = format!("{name}: ");
        line(json!([{"type": "TextRun", "text": name, "isSubtle": true}, {"type": "TextRun", "text": value}]))
    }));
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "fallbackText": title,
                "body": lines,
            },
        }],
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::id::{Seq, WorkloadId};
    use notices::notice::Kind;

    fn notice(message: &str) -> Notice {
        Notice {
            id: "msg_1".into(),
            kind: Kind::PurgeFailed,
            about: WorkloadId::deployment("shop", "web").into(),
            seq: Seq(7),
            at_ms: 0,
            rollout: "3f0c".to_owned(),
            change: "web: 1 → 2".to_owned(),
            message: message.to_owned(),
        }
    }

    fn read(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn nothing_of_a_message_is_read_as_slack_s_own() {
        let sent = read(&slack(&notice("<!channel> R&D <https://evil.example.com|web>\u{202e}")));
        let shown = "&lt;!channel&gt; R&amp;D &lt;https://evil.example.com|web&gt;\\u{202e}";
        assert_eq!(sent["text"], format!(":rotating_light: PurgeFailed: shop/web: {shown}"));
        let head = json!({"type": "mrkdwn", "text": ":rotating_light: *PurgeFailed: shop/web*", "verbatim": true});
        let plain = |text: &str| json!({"type": "plain_text", "text": text, "emoji": false});
        assert_eq!((&sent["blocks"][0]["text"], &sent["blocks"][1]["text"]), (&head, &plain(shown)));
        assert_eq!(sent["blocks"][2]["elements"], json!([plain("change: web: 1 → 2")]));
    }

    #[test]
    fn a_section_has_as_many_characters_as_slack_takes() {
        for (message, whole) in [("&".repeat(10_000), false), ("a".repeat(2_600), true)] {
            let sent = read(&slack(&notice(&message)));
            let text = sent["blocks"][1]["text"]["text"].as_str().expect("text").to_owned();
            assert!(text.chars().count() <= 3_000 && text.chars().count() > 2_500, "{}", text.len());
            assert_eq!(!text.ends_with('…'), whole);
            assert!(!text.trim_end_matches('…').ends_with('&'), "no escape is cut");
        }
    }

    #[test]
    fn a_card_reads_no_markdown_and_stays_within_the_bound_of_teams() {
        let link = "[web](https://evil.example.com) **1**";
        let card = read(&teams(&notice(link)))["attachments"][0]["content"].clone();
        assert_eq!(card["body"][1]["inlines"], json!([{"type": "TextRun", "text": link}]));
        let kinds: Vec<&Value> = card["body"].as_array().expect("lines").iter().map(|line| &line["type"]).collect();
        assert_eq!(kinds, ["RichTextBlock", "RichTextBlock", "RichTextBlock"]);
        let long = teams(&Notice { change: "😀".repeat(9_000), ..notice(&"😀".repeat(9_000)) });
        assert!(long.len() < 28 * 1024, "{}", long.len());
    }
}
