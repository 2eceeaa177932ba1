import { expect, it } from 'vitest'
import { runInProcess } from '../test/support/command.ts'
import { followSegments } from '../test/support/segments.ts'
import { useOwnService } from '../test/support/service.ts'
import { useSharedShop } from '../test/support/shop.ts'

const service = useOwnService()
const organization = useSharedShop(service)
const kith = (...words: string[]) => runInProcess(words, { KITH_URL: service.address, KITH_TOKEN: organization.token })

it('makes a retention rule, shows whom it concerns, and turns it on and off', async () => {
  const { people, segments } = organization.client
  await people.create({ external_id: 'ada', language: 'en' })
  await segments.create({ key: 'gone', filter: { language: 'en' } })
  expect(await kith('retention-rule', 'create', 'gone', '--days', 'x', '--action', 'erase')).toMatchObject({ code: 2 })
  const created = await kith('retention-rule', 'create', 'gone', '--days', '30', '--action', 'erase')
  expect(created).toMatchObject({
    code: 0,
    stdout: '',
    stderr: expect.stringContaining('Created the rule 1, gone. It is off.'),
  })
  await followSegments(service)
  expect(await kith('retention-rule', 'preview', '1')).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^0 people today/),
  })
  expect(await kith('retention-rule', 'patch', '1', '--daily-limit', '5')).toMatchObject({ code: 0 })
  expect(await kith('retention-rule', 'resume', '1', '--yes')).toMatchObject({
    code: 0,
    stderr: 'The rule gone is on.\n',
  })
  const listed = await kith('retention-rule', 'list', '--format', 'csv')
  expect(listed.stdout).toContain('1,gone,gone,30,erase,5,active,"0 told, 0 done"')
  expect(await kith('retention-rule', 'pause', '1', '--yes')).toMatchObject({ stderr: 'The rule gone is off.\n' })
  expect((await kith('retention-rule', 'runs', '1', '--format', 'csv')).stdout).toBe('day,told,done\n')
  expect(await kith('retention-rule', 'delete', '1', '--yes')).toMatchObject({
    code: 0,
    stderr: 'Deleted the rule 1.\n',
  })
})

it('holds a person, lists the holds, refuses an erasure without --override-hold, and ends a hold', async () => {
  await organization.client.people.create({ external_id: 'grace' })
  expect(await kith('hold', 'set', 'grace', '--reason', 'Case 17')).toMatchObject({
    code: 0,
    stderr: 'grace is held.\n',
  })
  expect((await kith('hold', 'list', '--format', 'csv')).stdout).toContain('grace,Case 17,')
  const refused = await kith('erase', 'grace', '--reason', 'Asked', '--yes')
  expect(refused.code).not.toBe(0)
  expect(refused.stderr).toContain('override_hold')
  expect(await kith('hold', 'end', 'grace', '--yes')).toMatchObject({
    code: 0,
    stderr: 'grace is not held any more.\n',
  })
  await kith('hold', 'set', 'grace', '--reason', 'Case 18')
  expect(await kith('erase', 'grace', '--reason', 'Asked', '--override-hold', '--yes')).toMatchObject({ code: 0 })
})
