import { tileWidth } from './tree.ts'

/** A tile as a path names it: hashes of a level, or the data of entries. `width` is 256, or that of a partial tile. */
export type TileName = { level: number | 'entries'; index: number; width: number }

const maxLevel = 63
const path = /^(0|[1-9]\d|[1-9]|entries)\/((?:x\d{3}\/){0,5}\d{3})(?:\.p\/([1-9]\d{0,2}))?$/

/** Parses the path of a tile, `<level>/<index>[.p/<width>]`, as https://c2sp.org/tlog-tiles. Undefined for any other text. */
export function parseTilePath(text: string): TileName | undefined {
  const [, levelText, indexText, widthText] = path.exec(text) ?? []
  if (levelText === undefined || indexText === undefined) return undefined
  // An index has no more groups of digits than it needs.
  if (indexText.startsWith('x000')) return undefined
  const level = levelText === 'entries' ? 'entries' : Number(levelText)
  const index = Number(indexText.replaceAll(/[x/]/g, ''))
  const width = widthText === undefined ? tileWidth : Number(widthText)
  if ((level !== 'entries' && level > maxLevel) || !Number.isSafeInteger(index)) return undefined
  if (widthText !== undefined && width >= tileWidth) return undefined
  return { level, index, width }
}
