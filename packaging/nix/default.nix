# nix-build packaging/nix: builds these sources with the nixpkgs of this machine.
{ pkgs ? import <nixpkgs> { } }: pkgs.callPackage ./package.nix { }
