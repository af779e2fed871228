//! In what way a collection is listed next: as the beginning of a watch, in pages, and in pages of how many objects.

/// After so many pages in a row that were not too large, twice as many objects are asked for. So at most one page in five is
/// read in vain where all objects are large, and one large object slows down only what is near it.
const GOOD_PAGES: u32 = 4;

/// See the module's text.
pub(crate) struct Manner {
    /// Not as the beginning of a watch, because the last one broke off.
    classic: bool,
    /// In one page, because pages expired.
    unpaged: bool,
    /// Objects asked for in one page: `most`, or fewer where those are too large together.
    page: u32,
    most: u32,
    /// Pages in a row that were not too large.
    good_pages: u32,
}

impl Manner {
    /// As the beginning of a watch, or in pages of so many objects.
    pub(crate) fn new(most: u32) -> Self {
        Self { classic: false, unpaged: false, page: most, most, good_pages: 0 }
    }

    /// Whether the listing that begins now may be the beginning of a watch. The one after it may be, in any case.
    pub(crate) fn may_stream(&mut self) -> bool {
        !std::mem::take(&mut self.classic)
    }

    /// How many objects are asked for at once; `None` is all of them.
    pub(crate) fn limit(&self) -> Option<u32> {
        (!self.unpaged).then_some(self.page)
    }

    /// A page was too large: half as many objects are asked for. Returns how many.
    pub(crate) fn ask_for_less(&mut self) -> u32 {
        self.good_pages = 0;
        self.page = (self.page / 2).max(1);
        self.page
    }

    /// A page was not too large.
    pub(crate) fn read_page(&mut self) {
        self.good_pages = self.good_pages.saturating_add(1);
        if self.good_pages >= GOOD_PAGES {
            self.good_pages = 0;
            self.page = self.page.saturating_mul(2).min(self.most);
        }
    }

    /// All pages were read.
    pub(crate) fn listed(&mut self) {
        self.unpaged = false;
    }

    /// A list could not be read to its end, if `expired` because a page expired: then the next one has one page.
    pub(crate) fn failed(&mut self, expired: bool) {
        (self.unpaged, self.classic) = (expired, expired);
    }

    /// A listing that was the beginning of a watch broke off, or did not. It is not asked for twice in a row, because it may be the
    /// list that breaks it.
    pub(crate) fn streamed(&mut self, broke: bool) {
        self.classic = broke;
    }
}
