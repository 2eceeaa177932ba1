import fc from 'fast-check'
import { expect, it } from 'vitest'
import { formatTileIndex, formatTilePath } from '../../test/support/tile-paths.ts'
import { parseTilePath } from './ledger.ts'

it('formats an index in groups of three digits', () => {
  expect([0, 67, 999, 1_000, 1_234_067].map(formatTileIndex)).toEqual([
    '000',
    '067',
    '999',
    'x001/000',
    'x001/x234/067',
  ])
})

it('parses every path that it formats', () => {
  const level = fc.integer({ min: 0, max: 63 })
  const width = fc.integer({ min: 1, max: 256 })
  fc.assert(
    fc.property(level, fc.nat({ max: 10 ** 15 }), width, (level, index, width) => {
      expect(parseTilePath(formatTilePath({ level, index }, width))).toEqual({ level, index, width })
    }),
  )
  expect(parseTilePath('entries/x039/062.p/12')).toEqual({ level: 'entries', index: 39_062, width: 12 })
})

it.each([
  '',
  '0',
  '0/',
  '0/0',
  '0/00',
  '0/0000',
  '00/000',
  '64/000',
  '-1/000',
  '0/x000/001',
  '0/001/002',
  '0/x001',
  '0/x01/002',
  '0/000.p/0',
  '0/000.p/256',
  '0/000.p/01',
  '0/000.p',
  '0/000.p/',
  '0/000/',
  '/0/000',
  'data/000',
  'entries',
  '0/000\n',
  '0/٠٠٠',
  '0/x999/x999/x999/x999/x999/999',
])('refuses the path %j', path => {
  expect(parseTilePath(path)).toBeUndefined()
})
