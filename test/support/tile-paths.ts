import { type TileId, tileWidth } from '../../src/ledger/tree.ts'

/** Formats the index of a tile: 1234067 is `x001/x234/067`. */
export function formatTileIndex(index: number): string {
  const digits = String(index)
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, '0').match(/\d{3}/g)!
  return groups.map((group, position) => (position < groups.length - 1 ? `x${group}` : group)).join('/')
}

/** The path of a full tile, or of a partial one of a width below 256. */
export const formatTilePath = ({ level, index }: TileId, width = tileWidth): string =>
  `${level}/${formatTileIndex(index)}${width < tileWidth ? `.p/${width}` : ''}`
