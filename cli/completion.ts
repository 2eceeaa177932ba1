import type { Command, Option } from 'commander'
import { newCommand, type PlainCommand } from './kith-command.ts'

/** A word that completes the command line at the cursor, and its description. */
export type Candidate = { value: string; description: string }

/** A candidate with this value tells the script to complete file names, which the shell does itself. */
const files = ':files'

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

export const completionCommand = (environment: NodeJS.ProcessEnv) =>
  newCommand(environment, 'completion', 'Prints a shell completion script.')
    .examples(
      'completion bash > ~/.local/share/bash-completion/completions/kith',
      'completion zsh > "$fpath[1]/_kith"',
      'completion fish > ~/.config/fish/completions/kith.fish',
    )
    .argument('<shell>', 'The shell.', { choices: shells })
    .action(shell => ({ value: { shell, script: scripts[shell] }, lines: [scripts[shell].trimEnd()] }))

/** The command that the scripts call. It prints one candidate per line: the word, a tab, its description. */
export const completeCommand = (program: PlainCommand) =>
  newCommand(program.environment, 'complete', 'Prints the candidates for the last word.')
    .examples('complete -- import people --for')
    .argument('[words...]', 'The words after kith. The last one is unfinished.')
    .action(words => {
      const value = candidatesFor(program.command, words)
      return { value, lines: value.map(({ value, description }) => `${value}\t${description}`) }
    })

/** The candidates for the last word: commands, options, and values of options and arguments. */
function candidatesFor(program: Command, words: string[]): Candidate[] {
  // Bash splits --format=csv into three words.
  const all = words.flatMap(word => (/^--[\w-]+=./.test(word) ? word.split(/=(.*)/, 2) : [word]))
  const last = all.at(-1) ?? ''
  const prefix = last === '=' ? '' : last
  const { command, position, option } = findCursor(program, all.slice(0, -1).concat(last === '=' ? ['='] : []))
  return candidatesAt(command, position, option, prefix).filter(
    ({ value }) => value === files || value.startsWith(prefix),
  )
}

type Cursor = { command: Command; position: number; option: Option | undefined }

/** Finds the command that the next word belongs to, and the argument position or the option that it fills. */
function findCursor(program: Command, words: string[]): Cursor {
  let cursor: Cursor = { command: program, position: 0, option: undefined }
  for (const word of words) {
    const { command, position, option } = cursor
    if (word === '=') continue
    const subcommand = command.commands.find(each => each.name() === word)
    if (option) cursor = { command, position, option: undefined }
    else if (word.startsWith('-'))
      cursor.option = command.options.find(
        each => [each.long, each.short].includes(word) && (each.required || each.optional),
      )
    else cursor = subcommand ? { ...cursor, command: subcommand, position: 0 } : { ...cursor, position: position + 1 }
  }
  return cursor
}

function candidatesAt(command: Command, position: number, option: Option | undefined, prefix: string): Candidate[] {
  if (option) return valuesOf(option.argChoices, option.flags)
  const help = command.createHelp()
  if (prefix.startsWith('-'))
    return help.visibleOptions(command).map(each => ({ value: each.long ?? each.flags, description: each.description }))
  const argument = command.registeredArguments[position]
  return [
    ...(position > 0 ? [] : help.visibleCommands(command)).map(each => ({
      value: each.name(),
      description: each.description(),
    })),
    ...(argument ? valuesOf(argument.argChoices, argument.name()) : []),
  ]
}

function valuesOf(choices: readonly string[] | undefined, name: string): Candidate[] {
  if (choices) return choices.map(value => ({ value, description: '' }))
  if (/\bfile\b/.test(name)) return [{ value: files, description: '' }]
  return name.startsWith('people|') ? [{ value: 'people', description: 'Or the key of a stack.' }] : []
}

const scripts: Record<Shell, string> = {
  bash: `_kith() {
  local value rest
  COMPREPLY=()
  while IFS=$'\\t' read -r value rest; do
    if [ "$value" = ${files} ]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")
    elif [ -n "$value" ]; then
      COMPREPLY+=("$value")
    fi
  done < <(kith complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _kith kith
`,
  zsh: `#compdef kith
_kith() {
  local line value description
  local -a candidates
  local -a typed=("\${(@)words[2,CURRENT]}")
  [[ "$words[CURRENT]" == --*=* ]] && compset -P '*='
  for line in "\${(@f)$(kith complete -- "\${(@)typed}" 2>/dev/null)}"; do
    value="\${line%%$'\\t'*}"
    description="\${line#*$'\\t'}"
    if [[ "$value" == ${files} ]]; then
      _files
    elif [[ -n "$value" ]]; then
      candidates+=("\${value//:/\\\\:}\${description:+:$description}")
    fi
  done
  (( \${#candidates} )) && _describe kith candidates
}
if [[ "$funcstack[1]" == _kith ]]; then _kith "$@"; else compdef _kith kith; fi
`,
  fish: `function __kith_candidates
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l option (string match -r -- '^--[^=]*=' $current)
  for line in (kith complete -- $words[2..-1] "$current" 2>/dev/null)
    if string match -q '${files}*' -- $line
      for path in (__fish_complete_path (string replace -r -- '^--[^=]*=' '' "$current"))
        echo "$option$path"
      end
    else
      echo "$option$line"
    end
  end
end
complete -c kith -f -a '(__kith_candidates)'
`,
}
