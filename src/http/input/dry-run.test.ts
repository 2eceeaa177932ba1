import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Fault } from '../../values/errors.ts'
import { takeDryRun } from './query.ts'

const pair = fc
  .tuple(fc.stringMatching(/^[a-z_]{1,8}(\[[a-z]{1,3}\])?$/), fc.stringMatching(/^[a-z0-9%=+]{0,6}$/))
  .filter(([name]) => !/^dry_?run(\[|$)/.test(name))
  .map(([name, value]) => `${name}=${value}`)

describe('takeDryRun', () => {
  it('takes the parameter out of any query, wherever it stands, and keeps the rest', () => {
    const names = fc.constantFrom('dry_run', 'dry%5Frun', '%64ry_run')
    fc.assert(
      fc.property(fc.array(pair), fc.nat({ max: 10 }), names, fc.boolean(), (pairs, index, name, value) => {
        const query = pairs.toSpliced(index, 0, `${name}=${value}`).join('&')
        expect(takeDryRun(query)).toEqual({ isDryRun: value, queryString: pairs.join('&') })
      }),
    )
  })

  it('returns a query without the parameter as it is', () => {
    fc.assert(
      fc.property(fc.array(pair), pairs => {
        const queryString = pairs.join('&')
        expect(takeDryRun(queryString)).toEqual({ isDryRun: false, queryString })
      }),
    )
    for (const queryString of ['', '&', 'dry_ru=true', 'my_dry_run=true', 'dry_run_=true', '%=1', 'a[dry_run]=true'])
      expect(takeDryRun(queryString)).toEqual({ isDryRun: false, queryString })
  })

  it.each([
    ['dry_run', '/dry_run'],
    ['dry_run=', '/dry_run'],
    ['dry_run=1', '/dry_run'],
    ['dry_run=True', '/dry_run'],
    ['dry_run=true ', '/dry_run'],
    ['dry_run=tru%65', '/dry_run'],
    ['dry_run=maybe&x=1', '/dry_run'],
    ['dry_run=true&dry_run=true', '/dry_run'],
    ['dry_run=true&dry%5Frun=false', '/dry_run'],
    ['dry_run[]=true', '/dry_run[]'],
    ['dry_run[0]=true', '/dry_run[0]'],
    ['dry_run%5B0%5D=true', '/dry_run[0]'],
    ['dryRun=true', '/dryRun'],
    ['dry-run=true', '/dry-run'],
    ['x=1&DRY_RUN=true', '/DRY_RUN'],
  ])('refuses %s', (query, path) => {
    const paths = () => {
      try {
        takeDryRun(query)
      } catch (error) {
        return (error as Fault).refusal.details.map(detail => detail.path)
      }
      return []
    }
    expect(paths()).toEqual([path])
  })
})
