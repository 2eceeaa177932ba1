import { Command } from 'commander'

export function serveCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('serve')
    .description('run the service until a signal ends it')
    .addHelpText('after', '\nExample:\n  PORT=8081 npm run -s kith -- serve')
    .action(async () => {
      // Only this command needs the whole service; the others start twice as fast without.
      const { serve } = await import('../src/main.ts')
      await serve(environment)
    })
}
