// What build.mjs adds to imports.
declare module "worker:*" {
    const url: string;
    export default url;
}
declare module "cairn.wasm" {
    const url: string;
    export default url;
}
declare module "*.css";
