//! Windows and freezes as [`Calendar`], on jiff and the time zones of the system, or where it has none, of the build.
//!
//! What is open is decided in `opening`, from the time alone; here it is only asked what time it is.

mod opening;

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use objects::asked::Opening;
use objects::gates::{Freeze, Window};
use objects::ports::Calendar;
use purge::ports::{Clock, PortError};

/// The calendar of the wall.
pub struct WallCalendar(Arc<dyn Clock>);

impl WallCalendar {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(clock)
    }
}

impl Calendar for WallCalendar {
    fn read(&self, windows: &[Window], freezes: &[Freeze]) -> Result<Opening, PortError> {
        let failed = |cause: String| PortError::lasting("failed to read the calendar", cause);
        let zoned = |window: &Window| {
            // jiff remembers the zones that it has read from disk.
            let zone = TimeZone::get(&window.zone);
            let unknown =
                |_| failed(format!("there is no time zone {:?}; write one such as Europe/Berlin", window.zone));
            Ok((window.clone(), zone.map_err(unknown)?))
        };
        let windows: Vec<(Window, TimeZone)> = windows.iter().map(zoned).collect::<Result<_, PortError>>()?;
        let now = Timestamp::from_millisecond(self.0.wall_ms());
        let now = now.map_err(|_| failed("the clock shows no year of this calendar".to_owned()))?;
        Ok(opening::at(now, &windows, freezes))
    }
}
