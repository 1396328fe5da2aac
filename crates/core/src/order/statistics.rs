//! How many orders stand where.

use serde::{Deserialize, Serialize};

/// Counts of orders. One order can be counted in several of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderStatistics {
    pub total: u64,
    /// Not begun, and planned for no time.
    pub not_planned: u64,
    /// Not begun, and planned for a time to come.
    pub planned: u64,
    /// Not begun, and its time has come.
    pub due: u64,
    pub started: u64,
    /// It has a task.
    pub in_task: u64,
    /// An attempt of its task runs.
    pub in_process: u64,
    /// Its step failed and is tried again later.
    pub setback: u64,
    pub suspended: u64,
    /// Always none: an order that cannot go on is suspended, not set aside.
    pub blacklisted: u64,
    /// Always none: chains are configured in files, orders are not.
    pub permanent: u64,
    /// Always none: no files are watched.
    pub file_order: u64,
}

impl OrderStatistics {
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in self.all_mut().into_iter().zip(other.all()) {
            *sum += more;
        }
    }

    fn all(&self) -> [u64; 12] {
        let mut copy = *self;
        copy.all_mut().map(|number| *number)
    }

    fn all_mut(&mut self) -> [&mut u64; 12] {
        [
            &mut self.total,
            &mut self.not_planned,
            &mut self.planned,
            &mut self.due,
            &mut self.started,
            &mut self.in_task,
            &mut self.in_process,
            &mut self.setback,
            &mut self.suspended,
            &mut self.blacklisted,
            &mut self.permanent,
            &mut self.file_order,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_add_up_under_their_documented_names() {
        let one = OrderStatistics { total: 1, in_task: 1, file_order: 2, ..OrderStatistics::default() };
        let mut sum = one;
        sum.add(&one);
        let json = serde_json::to_value(sum).unwrap();
        assert_eq!((&json["total"], &json["inTask"], &json["fileOrder"]), (&2.into(), &2.into(), &4.into()));
        assert_eq!(json.as_object().unwrap().len(), 12);
    }
}
