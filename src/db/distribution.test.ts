import { expect, it } from 'vitest'
import { describePending, planDistribution } from './distribution.ts'

const settings = ['timezone=utc', 'datestyle=iso, mdy', 'enable_seqscan=off']
const pending = [
  { name: 'organizations', byOrganization: false },
  { name: 'change_heads', byOrganization: true },
  { name: 'entities', byOrganization: true },
]

it('distributes the tables of organizations together by organization, and copies the others to every server', () => {
  expect(planDistribution({ distributed: [], pending, settings }, 'kith')).toEqual([
    `select create_reference_table('organizations')`,
    `select create_distributed_table('change_heads', 'organization_id', colocate_with => 'none')`,
    `select create_distributed_table('entities', 'organization_id', colocate_with => 'change_heads')`,
  ])
})

it('gives the database the settings of a session that do not reach its workers', () => {
  expect(planDistribution({ distributed: [], pending: [], settings: settings.slice(0, 2) }, 'my "kith"')).toEqual([
    `alter database "my ""kith""" set enable_seqscan = 'off'`,
  ])
})

it('does only what is left after an interruption, and nothing if all is done', () => {
  const left = { distributed: ['organizations', 'change_heads'], pending: pending.slice(2), settings }
  expect(planDistribution(left, 'kith')).toHaveLength(1)
  expect(planDistribution({ distributed: [], pending: [], settings }, 'kith')).toEqual([])
})

it('names what is left, and nothing if all is done', () => {
  const names = pending.map(({ name }) => name).join(', ')
  const left = (distribution: object) =>
    describePending({ distributed: ['change_heads'], pending: [], settings, ...distribution })
  expect(left({})).toBeUndefined()
  expect(left({ distributed: [], pending })).toBe('the database has Citus, and no table is distributed')
  expect(left({ pending })).toBe(`the database has Citus, and these tables are not distributed: ${names}`)
  expect(left({ settings: [] })).toBe(
    'the database has Citus, and these settings of it are missing: timezone, datestyle, enable_seqscan',
  )
})
