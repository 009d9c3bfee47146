//! The devices of a card, one a bank, of any kind.
//!
//! They stand behind pointers, so that the engine is compiled once for all kinds.

use crate::error::LftlError;
use nand::Nand;
use std::any::{Any, type_name};

/// A device of bytes whose kind can be asked for.
pub(crate) trait Device: Nand<Payload = [u8]> + Any {}

impl<N: Nand<Payload = [u8]> + Any> Device for N {}

/// The devices of a card, one a bank.
pub struct Devices(pub(crate) Vec<Box<dyn Device>>);

impl Devices {
    /// The devices as what they were made of.
    ///
    /// # Errors
    /// [`LftlError::OtherKind`] if one of them is no `N`; all are lost with it.
    pub fn into_kind<N: Any>(self) -> Result<Vec<N>, LftlError> {
        let other = |_| LftlError::OtherKind { wanted: type_name::<N>() };
        let kind = |device: Box<dyn Any>| device.downcast::<N>().map(|device| *device).map_err(other);
        self.0.into_iter().map(|device| kind(device)).collect()
    }
}

impl<N: Nand<Payload = [u8]> + Any> FromIterator<N> for Devices {
    fn from_iter<I: IntoIterator<Item = N>>(devices: I) -> Self {
        Self(devices.into_iter().map(|device| Box::new(device) as Box<dyn Device>).collect())
    }
}

impl<N: Nand<Payload = [u8]> + Any> From<Vec<N>> for Devices {
    fn from(devices: Vec<N>) -> Self {
        devices.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nand::{Capabilities, Dimensions, Geometry, MemNand};

    #[test]
    fn devices_are_given_back_as_what_they_are_and_as_nothing_else() -> Result<(), Box<dyn std::error::Error>> {
        let geometry = Geometry::new(Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 1,
            pages_per_block: 1,
            page_bytes: 4096,
            spare_bytes: 64,
        })?;
        let devices = || (0..3).map(|_| MemNand::new(geometry, Capabilities::MODERN)).collect::<Devices>();
        assert_eq!(devices().into_kind::<MemNand>()?.len(), 3);
        let other = devices().into_kind::<crate::Hollow>().err();
        assert!(matches!(other, Some(LftlError::OtherKind { .. })), "{other:?}");
        Ok(())
    }
}
