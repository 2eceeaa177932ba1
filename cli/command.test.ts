import { expect, it } from 'vitest'
import { newPlainCommand } from './command.ts'

it('the help of a repeatable option has no default of its own, and that of others says theirs', () => {
  const command = newPlainCommand('count', 'Counts.', ['count'])
    .option('--group <field>', 'A field (repeatable).', (field, fields: string[]) => [...fields, field], [])
    .option('--size <size>', 'The size.', '20')
  const help = command.helpInformation()
  expect(help).toMatch(/A field \(repeatable\)\.\n/)
  expect(help).toMatch(/The size\. \(default: "20"\)/)
})
