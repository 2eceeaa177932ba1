import { addressRows } from './address-rows.ts'
import { definitionRows } from './definition-rows.ts'
import { linkRows } from './link-rows.ts'
import { logRows } from './log-rows.ts'
import { organizationRows } from './organization-rows.ts'
import type { GrowthRow } from './row.ts'
import { segmentRows } from './segment-rows.ts'

/** All rows, by what grows. */
export const growthRows: readonly GrowthRow[] = [
  ...addressRows,
  ...definitionRows,
  ...linkRows,
  ...logRows,
  ...organizationRows,
  ...segmentRows,
]
