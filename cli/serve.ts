import { Command } from 'commander'

export function serveCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('serve')
    .description('run the service until a signal ends it')
    .addHelpText('after', '\nExample:\n  PORT=8081 npm run -s kith -- serve')
    .action(async () => {
      // Loading the whole service takes 0.1 s more, which the other commands do without.
      const { serve } = await import('../src/main.ts')
      await serve(environment)
    })
}
