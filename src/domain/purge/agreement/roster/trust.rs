//! Whether a copy on a board proves who wrote it: with a key it does; without one, anyone with access may have written
//! it.

/// How far copies and beats are proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// They are signed with `group.key_file`: a member wrote every copy that we believe, at some time.
    #[default]
    Signed,
    /// They are not, and the configuration says that this is meant (`group.unsigned`).
    UnsignedOnPurpose,
    /// They are not, and the configuration does not say that this is meant.
    Unsigned,
}

impl Trust {
    /// By whether there is a key, and whether the configuration says that none is meant.
    pub const fn of(keyed: bool, unsigned: bool) -> Self {
        match (keyed, unsigned) {
            (true, _) => Self::Signed,
            (false, true) => Self::UnsignedOnPurpose,
            (false, false) => Self::Unsigned,
        }
    }

    /// Whether a copy proves that a member wrote it.
    pub const fn is_proof(self) -> bool {
        matches!(self, Self::Signed)
    }

    /// The warning about such a group, until the configuration says that this is meant. For `status` and `check`.
    pub const fn warning(self) -> Option<&'static str> {
        match self {
            Self::Signed | Self::UnsignedOnPurpose => None,
            Self::Unsigned => Some(
                "the members' records are not signed: a program that can write to one of their Redis servers can cause a purge, or \
                 prevent one; set group.key_file in every member, or group.unsigned = true if that is meant",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_group_without_a_key_that_nobody_meant_is_warned_of() {
        let warned = |keyed, unsigned| Trust::of(keyed, unsigned).warning().is_some();
        assert_eq!(
            [warned(true, false), warned(true, true), warned(false, true), warned(false, false)],
            [false, false, false, true]
        );
        assert!(Trust::of(true, true).is_proof() && !Trust::of(false, true).is_proof());
    }
}
