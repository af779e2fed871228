//! What a colour says. Each colour means one thing on every page, and comes with a mark.

/// How something looks at a glance: a class of the style sheet, a mark, and the colour of an icon. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mood {
    /// The edge is stale, or a purge is refused.
    Bad,
    /// Somebody should look.
    Warn,
    /// It moves.
    Busy,
    /// It ended well.
    Good,
    /// Nothing to say: it neither moves nor has it ended.
    Rest,
}

impl Mood {
    pub const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Busy => "busy",
            Self::Warn => "warn",
            Self::Bad => "bad",
            Self::Rest => "rest",
        }
    }

    /// So that the colour is never all there is.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Busy => "…",
            Self::Warn => "!",
            Self::Bad => "✗",
            Self::Rest => "–",
        }
    }

    /// A dot, as a `data:` address; `%23` is the `#` of the colour.
    pub fn icon(self) -> String {
        let colour = match self {
            Self::Good => "1f9d63",
            Self::Busy => "2f74d0",
            Self::Warn => "d99a1c",
            Self::Bad => "d0392f",
            Self::Rest => "82898d",
        };
        format!(
            "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E\
             %3Ccircle cx='8' cy='8' r='6' fill='%23{colour}'/%3E%3C/svg%3E"
        )
    }

    pub const fn needs_a_look(self) -> bool {
        matches!(self, Self::Bad | Self::Warn)
    }
}
