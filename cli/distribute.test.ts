import { tmpdir } from 'node:os'
import { expect, it } from 'vitest'
import { runInProcess } from '../test/support/command.ts'
import { useService } from '../test/support/service.ts'

const service = useService()
const kith = (...args: string[]) =>
  runInProcess(['distribute', ...args], { DATABASE_URL: service.databaseUrl }, tmpdir())

it.each([[[]], [['--dry-run']]])(
  'refuses a database without Citus, and changes nothing: kith distribute %s',
  async args => {
    const settings = () => service.sql('select * from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase')
    const before = await settings()
    const { code, stdout, stderr } = await kith(...args)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain('has no Citus. Run "create extension citus" on it and on every worker')
    expect(await settings()).toEqual(before)
  },
)

it('has help with an example, and exits with 2 on wrong usage', async () => {
  expect(await kith('--help')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('npx kith distribute --dry-run'),
  })
  expect(await kith('now')).toMatchObject({ code: 2, stdout: '' })
})
