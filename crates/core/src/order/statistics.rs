//! Counts of orders by state.

use serde::{Deserialize, Serialize};

/// Counts of orders by state. An order can be counted in several states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderStatistics {
    /// All unfinished orders.
    pub total: u64,
    /// Orders that have not started and have no planned time.
    pub not_planned: u64,
    /// Orders that have not started and are planned for a future time.
    pub planned: u64,
    /// Orders that have not started and whose planned time has passed.
    pub due: u64,
    /// Orders whose first step has started.
    pub started: u64,
    /// Orders that have a task.
    pub in_task: u64,
    /// Orders whose task is running.
    pub in_process: u64,
    /// Orders whose step failed and will be retried.
    pub setback: u64,
    /// Orders that are suspended.
    pub suspended: u64,
    /// Always 0: an order that cannot continue is suspended.
    pub blacklisted: u64,
    /// Always 0: chains are configured in files, orders are not.
    pub permanent: u64,
    /// Always 0: no directories are watched for orders.
    pub file_order: u64,
}

impl OrderStatistics {
    /// Adds the counts of `other` to these.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.counts_mut().into_iter().zip(other.counts()) {
            *sum += count;
        }
    }

    fn counts(&self) -> [u64; 12] {
        let mut copy = *self;
        copy.counts_mut().map(|number| *number)
    }

    fn counts_mut(&mut self) -> [&mut u64; 12] {
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
    fn statistics_add_up_and_serialize_under_their_documented_names() {
        let one = OrderStatistics { total: 1, in_task: 1, file_order: 2, ..OrderStatistics::default() };
        let mut sum = one;
        sum.add(&one);
        let json = serde_json::to_value(sum).unwrap();
        assert_eq!((&json["total"], &json["inTask"], &json["fileOrder"]), (&2.into(), &2.into(), &4.into()));
        assert_eq!(json.as_object().unwrap().len(), 12);
    }
}
