import { findTarget } from '../../../transfer/columns.ts'
import { momentOf } from '../entity/fields.ts'
import type { Mapping, Targets } from './file-reader.ts'

/** How the consents of a file were given: what a person says once for all of its lines. */
export type ConsentOrigin = { method: string | null; source: string; day: string }

/** The evidence that a file may lack, by the keys of an answer. */
const askedEvidence = ['method', 'source', 'collected_at'] as const
export type AskedEvidence = (typeof askedEvidence)[number]

/** The evidence that no column has, of each consent that a column answers. */
export function missingEvidence(mapping: Mapping, targets: Targets): [field: string, AskedEvidence][] {
  return mapping.flatMap(field => {
    if (!field || findTarget(field, targets)?.to !== 'consent') return []
    return askedEvidence
      .map((key): [string, AskedEvidence] => [`${field}.${key}`, key])
      .filter(([name]) => !mapping.includes(name))
  })
}

/** The cells that the origin adds to every record, by their fields. */
export function originCells({ method, source, day }: ConsentOrigin, missing: [field: string, AskedEvidence][]) {
  const values = { method: method ?? '', source: source.trim(), collected_at: momentOf(`${day}T00:00`) ?? '' }
  return new Map(missing.map(([field, key]) => [field, values[key]] as const).filter(([, cell]) => cell !== ''))
}
