import { type Command, InvalidArgumentError } from 'commander'
import { newCommand } from './command.ts'

export function serveCommand(environment: NodeJS.ProcessEnv): Command {
  const examples = ['PORT=8081 serve', 'serve --workers 2', 'serve --json 2>> kith.log']
  return newCommand('serve', 'Runs the service until a signal ends it.', examples)
    .option('--workers <count>', 'Processes that serve on one port.', wholeNumber, 1)
    .action(async (options: { workers: number; json?: true }) => {
      // The whole service takes 0.5 s to load. The help does not need it.
      const { serve } = await import('../src/main.ts')
      await serve(environment, options)
    })
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d?$/.test(text)) throw new InvalidArgumentError('Give a whole number from 1 to 99.')
  return Number(text)
}
