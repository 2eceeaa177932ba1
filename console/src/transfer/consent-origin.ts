import type { Definitions } from '@kith/client'
import { findTarget, targetsOf } from '../../../transfer/columns.ts'
import { momentOf } from '../entity/fields.ts'
import type { Mapping } from './file-reader.ts'

/** How the consents of a file were given: what a person says once for all of its lines. */
export type ConsentOrigin = { method: string | null; source: string; day: string }

/** The evidence that a file may lack, by the keys of an answer. */
const askedEvidence = ['method', 'source', 'collected_at'] as const
export type AskedEvidence = (typeof askedEvidence)[number]

/** The evidence that no column has, of each consent that a column answers. */
export function missingEvidence(
  mapping: Mapping,
  owner: string,
  definitions: Definitions,
): [field: string, AskedEvidence][] {
  const targets = targetsOf(owner, definitions)
  return mapping.flatMap(field => {
    if (!field || findTarget(field, targets)?.to !== 'consent') return []
    return askedEvidence
      .map((key): [string, AskedEvidence] => [`${field}.${key}`, key])
      .filter(([name]) => !mapping.includes(name))
  })
}

/** The cells that the origin adds to every record, by their fields. */
export function originCells(
  { method, source, day }: ConsentOrigin,
  missing: [field: string, AskedEvidence][],
): Map<string, string> {
  const values = { method: method ?? '', source: source.trim(), collected_at: momentOf(`${day}T00:00`) ?? '' }
  return new Map(
    missing.map(([field, key]): [string, string] => [field, values[key]]).filter(([, cell]) => cell !== ''),
  )
}
