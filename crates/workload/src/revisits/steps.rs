//! From one run to the next within a region: what a trace is counted by, and what a pass is drawn
//! by.
//!
//! Each extent has a number of runs left. A region knows the extents of which runs were begun, the
//! latest first, and those that are new. The next run of a region is a step of one [`Kind`].

use super::layout::Layout;

/// How a run follows those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To the next page by address: from the last run in the region, or from the last run of all.
    Next,
    /// To the extent of the last run in the region.
    Again,
    /// To an extent that no run went to.
    New,
    /// To any other.
    Old,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Next, Kind::Again, Kind::New, Kind::Old];
}

/// Regions by the share of their runs that go on by address.
pub(crate) const ORDERS: usize = 5;

/// The number of such a share, which is `part` of `all` runs.
pub(crate) fn order(part: u64, all: u64) -> u8 {
    let percent = 100 * part / all.max(1);
    [25, 60, 90, 100].into_iter().filter(|&limit| percent >= limit).count() as u8
}

/// Cases that are told apart where the kind of a step is counted: the kind before, whether it was
/// in the same region, the region's order, and which kinds are possible.
pub(crate) const CASES: usize = Kind::ALL.len() * 2 * ORDERS * 16;

/// Extents of a region to which a run can go.
struct Region {
    /// Those of which runs were begun and some are left, the latest last.
    old: Vec<u32>,
    /// Those of which none was, by address.
    new: Vec<u32>,
    /// The extent of the last run.
    last: Option<u32>,
    /// The last that was new.
    last_new: Option<u32>,
}

/// What can follow in a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    /// By kind.
    pub(crate) possible: [bool; 4],
    pub(crate) case: usize,
}

/// Where a pass is.
pub(crate) struct State<'a> {
    layout: &'a Layout,
    left: Vec<u32>,
    regions: Vec<Region>,
    orders: &'a [u8],
    /// The last run's extent, and its kind.
    last: Option<u32>,
    kind: Kind,
}

impl<'a> State<'a> {
    /// Before the first run; `runs` are those of each extent, `orders` those of the regions.
    pub(crate) fn new(layout: &'a Layout, runs: Vec<u32>, orders: &'a [u8]) -> State<'a> {
        let empty = || Region { old: Vec::new(), new: Vec::new(), last: None, last_new: None };
        let mut regions: Vec<Region> = (0..layout.regions).map(|_| empty()).collect();
        for (extent, &region) in (0..).zip(&layout.region) {
            regions[region as usize].new.push(extent);
        }
        State { layout, left: runs, regions, orders, last: None, kind: Kind::Next }
    }

    /// The extents with runs left that the next page by address has.
    fn next(&self, region: u32) -> impl Iterator<Item = u32> {
        let left = |extent: &u32| self.left[*extent as usize] > 0;
        let own = self.regions[region as usize].last.map_or(0..0, |last| self.layout.after(last, region));
        let own_left = own.clone().any(|extent| left(&extent));
        let from = match self.last {
            Some(last) if !own_left && self.layout.region[last as usize] != region => self.layout.after(last, region),
            _ => own,
        };
        from.filter(left)
    }

    /// The one of them whose length is nearest to that of the run before.
    pub(crate) fn next_alike(&self, region: u32) -> Option<u32> {
        let before = self.regions[region as usize].last.or(self.last)?;
        let bytes = |extent: u32| self.layout.extents[extent as usize].bytes as f64;
        let apart = |extent: &u32| (bytes(*extent) / bytes(before)).ln().abs();
        self.next(region).min_by(|a, b| apart(a).total_cmp(&apart(b)))
    }

    /// The extent of the last run, if it has runs left.
    pub(crate) fn again(&self, region: u32) -> Option<u32> {
        self.regions[region as usize].last.filter(|&last| self.left[last as usize] > 0)
    }

    /// How many old ones there are but for that of the last run.
    pub(crate) fn olds(&self, region: u32) -> usize {
        self.regions[region as usize].old.len() - usize::from(self.again(region).is_some())
    }

    /// The old one that so many others were accessed after.
    pub(crate) fn old(&self, region: u32, depth: usize) -> u32 {
        self.regions[region as usize].old[self.olds(region) - 1 - depth]
    }

    /// After how many old ones an extent was accessed last.
    pub(crate) fn depth(&self, region: u32, extent: u32) -> Option<usize> {
        let place = self.regions[region as usize].old.iter().rposition(|&old| old == extent)?;
        (self.olds(region) - 1).checked_sub(place)
    }

    pub(crate) fn news(&self, region: u32) -> &[u32] {
        &self.regions[region as usize].new
    }

    /// The place among those that are new of the first after the last that was.
    pub(crate) fn after_new(&self, region: u32) -> usize {
        let Region { new, last_new, .. } = &self.regions[region as usize];
        last_new.map_or(0, |last| new.partition_point(|&extent| extent < last))
    }

    pub(crate) fn choice(&self, region: u32) -> Choice {
        let possible = [
            self.next(region).next().is_some(),
            self.again(region).is_some(),
            !self.news(region).is_empty(),
            self.olds(region) > 0,
        ];
        let same = self.last.is_some_and(|last| self.layout.region[last as usize] == region);
        let order = usize::from(self.orders[region as usize]).min(ORDERS - 1);
        let bits = possible.into_iter().fold(0, |bits, can| 2 * bits + usize::from(can));
        let before = 2 * (self.kind as usize) + usize::from(same);
        Choice { possible, case: (before * ORDERS + order) * 16 + bits }
    }

    /// Whether it is on the next page by address.
    pub(crate) fn goes_on(&self, extent: u32) -> bool {
        self.next(self.layout.region[extent as usize]).any(|next| next == extent)
    }

    /// The kind of a step to an extent that has runs left.
    pub(crate) fn kind(&self, extent: u32) -> Kind {
        let region = self.layout.region[extent as usize];
        if self.again(region) == Some(extent) {
            Kind::Again
        } else if self.goes_on(extent) {
            Kind::Next
        } else if self.news(region).binary_search(&extent).is_ok() {
            Kind::New
        } else {
            Kind::Old
        }
    }

    /// Begins a run.
    pub(crate) fn step(&mut self, extent: u32, kind: Kind) {
        let left = &mut self.left[extent as usize];
        debug_assert!(*left > 0, "extent {extent} has no run left");
        *left -= 1;
        let region = &mut self.regions[self.layout.region[extent as usize] as usize];
        if let Ok(place) = region.new.binary_search(&extent) {
            region.new.remove(place);
            region.last_new = Some(extent);
        } else if let Some(place) = region.old.iter().rposition(|&old| old == extent) {
            region.old.remove(place);
        }
        if *left > 0 {
            region.old.push(extent);
        }
        region.last = Some(extent);
        (self.last, self.kind) = (Some(extent), kind);
    }
}

/// The bin of a distance: up to 3 one each, then four for each power of two.
fn bin(distance: u64) -> i32 {
    match distance.checked_ilog2() {
        Some(power) if power >= 2 => 4 * power as i32 + ((distance << 2 >> power) & 3) as i32,
        _ => distance as i32,
    }
}

/// The least distance of a bin, and the one after its largest.
fn distances(bin: i32) -> (u64, u64) {
    if bin < 8 {
        let distance = bin.clamp(0, 4) as u64;
        return (distance, distance + 1);
    }
    let (power, quarter) = ((bin as u64 / 4).min(40), bin as u64 % 4);
    ((4 + quarter) << power >> 2, (5 + quarter) << power >> 2)
}

/// A depth among so many, counted from the end that is nearer: below 0 from the far one.
pub(crate) fn depth_bin(depth: usize, all: usize) -> i32 {
    let far = all - 1 - depth;
    if depth <= far { bin(depth as u64) } else { -1 - bin(far as u64) }
}

/// A depth among so many of such a bin, or the nearest to it; `draw` gives a number below another.
pub(crate) fn depth_of(depth_bin: i32, all: usize, draw: impl FnOnce(u64) -> u64) -> usize {
    let far = depth_bin < 0;
    let (least, end) = distances(if far { -1 - depth_bin } else { depth_bin });
    let distance = ((least + draw(end - least)) as usize).min((all - 1) / 2);
    if far { all - 1 - distance } else { distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_depth_is_of_its_bin() {
        for all in 1..300 {
            for depth in 0..all {
                let code = depth_bin(depth, all);
                let (least, end) = distances(if code < 0 { -1 - code } else { code });
                let near = depth.min(all - 1 - depth) as u64;
                assert!((least..end).contains(&near), "{depth} of {all} in bin {code}: {least}..{end}");
                assert_eq!(depth_of(code, all, |_| near - least), depth, "{depth} of {all}");
            }
        }
    }

    #[test]
    fn steps_are_what_they_are_called() {
        let extent = |page: u64, pages: u64| super::super::layout::Extent {
            trim: false,
            offset: page * 4096,
            bytes: pages * 4096,
        };
        let layout = Layout::new(vec![extent(0, 1), extent(0, 2), extent(3, 1), extent(3, 4), extent(64, 1)]);
        let orders = vec![0; layout.regions];
        let mut state = State::new(&layout, vec![2, 1, 1, 1, 2], &orders);
        let mut to = |extent: u32, wanted: Kind| {
            assert_eq!(state.kind(extent), wanted, "to {extent}");
            state.step(extent, wanted);
            state.next_alike(0)
        };
        // The next page has extents of one page and of four.
        assert_eq!(to(0, Kind::New), Some(2));
        assert_eq!(to(1, Kind::New), Some(2));
        assert_eq!(to(3, Kind::Next), None);
        // The region after goes on from the last run of all.
        assert_eq!(to(4, Kind::Next), None);
        assert_eq!(to(0, Kind::Old), Some(2));
        assert_eq!(to(4, Kind::Again), Some(2));
        assert_eq!(to(2, Kind::Next), None);
        assert_eq!(state.choice(0).possible, [false; 4]);
    }
}
