// What a server on either TypeScript SDK offers: the words of `taut serve`.

export const CITIES = ['Amsterdam', 'Athens', 'Berlin', 'Bern', 'Lisbon', 'Tokyo'];
export const LANGUAGES = ['Dutch', 'English', 'German', 'Japanese'];

export const startingWith = (words, start) =>
    words.filter((word) => word.toLowerCase().startsWith(start.toLowerCase()));

export const says = (text) => ({ content: [{ type: 'text', text }] });
export const fails = (text) => ({ ...says(text), isError: true });

export const sleep = (ms, signal) =>
    new Promise((resolve) => {
        const timer = setTimeout(resolve, ms);
        signal?.addEventListener('abort', () => {
            clearTimeout(timer);
            resolve();
        });
    });

export const weather = (city) => {
    const known = CITIES.find((name) => name.toLowerCase() === city.toLowerCase());
    if (!known) throw new Error(`no weather for ${city}`);
    return `${known}: sunny, as always in a demo`;
};

export const COFFEE = {
    type: 'object',
    properties: {
        size: { type: 'string', enum: ['small', 'large'], description: 'Which size?' },
        milk: { type: 'boolean', default: true, description: 'With milk?' },
        name: { type: 'string', description: 'A name for the cup' },
    },
    required: ['size'],
};

export const order = (answer) => {
    if (answer?.action !== 'accept') return 'no coffee then';
    const { size, milk, name } = answer.content;
    return `one ${size} coffee, ${milk ? 'with milk' : 'black'}, for ${name ?? 'you'}`;
};

export const greeting = (name, language) => ({
    messages: [
        { role: 'user', content: { type: 'text', text: `Greet ${name} in ${language ?? 'English'}.` } },
    ],
});

export const README = '# interop demo\n\nWhat taut serve offers, on another SDK.\n';

// With `--http PORT` a server serves Streamable HTTP there, not stdio.
const http = process.argv.indexOf('--http');
export const HTTP = http < 0 ? undefined : Number(process.argv[http + 1]);

// With `--tools N` a server has so many plain tools more, and everything on one page: for the benchmark.
const at = process.argv.indexOf('--tools');
export const PLAIN = at < 0 ? undefined : Number(process.argv[at + 1]);
export const plainNames = Array.from({ length: PLAIN ?? 0 }, (_, n) => `tool_${`${n}`.padStart(3, '0')}`);
