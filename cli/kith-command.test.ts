import { expect, it } from 'vitest'
import { newPlainCommand } from './kith-command.ts'

it('the help of a repeatable option has no default of its own, and that of others says theirs', () => {
  const { command } = newPlainCommand({}, 'count', 'Counts.')
    .option('--group <field>', 'A field (repeatable).', {
      parse: (field, fields: string[]) => [...fields, field],
      default: [],
    })
    .option('--size <size>', 'The size.', { default: '20' })
  const help = command.helpInformation()
  expect(help).toMatch(/A field \(repeatable\)\.\n/)
  expect(help).toMatch(/The size\. \(default: "20"\)/)
})
